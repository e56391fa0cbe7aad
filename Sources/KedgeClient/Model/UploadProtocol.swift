/// Protocol of an upload.
///
/// In every protocol an upload is durable, survives a kill and can be paused, resumed and canceled.
/// The guarantees differ:
///
/// - With ``native``, SHA-256 verifies every chunk and the file. Several chunks are in flight at
///   once, and requests are idempotent: a lost answer never makes a second copy.
/// - With ``tus`` and ``resumableUpload``, bytes are sent in one request after the other, each from
///   the offset that the server acknowledged. If the answer to the creation is lost, an empty
///   upload remains on the server. The result is ``Verification/unverified`` unless the server
///   reports a SHA-256.
///
/// For the latter two, ``ClientConfiguration/serverURL`` is the exact URL at which uploads are
/// created, for example `https://example.org/files/`.
public enum UploadProtocol: String, CaseIterable, Sendable, Codable {
    /// Interface of a Kedge server.
    case native
    /// tus 1.0 with the extension *creation*. Uses *checksum* (SHA-256 or SHA-1), *expiration* and
    /// *termination* where the server supports them.
    case tus
    /// IETF resumable uploads (draft-ietf-httpbis-resumable-upload). Starts with interop version 9,
    /// which the RFC will use. If the server refuses it, the client uses the newest of 8 to 3, or
    /// the form without a version. Sends the digest of each body as `Content-Digest`.
    case resumableUpload = "resumable-upload"
}

/// The earlier name of ``UploadProtocol``.
public typealias UploadDialect = UploadProtocol
