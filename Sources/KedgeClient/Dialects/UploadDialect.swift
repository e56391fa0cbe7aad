/// The protocol in which an upload speaks to its server.
///
/// An upload in any of them is durable, goes on after a kill and is steered in the same way. They differ in
/// what the server can promise:
///
/// - In ``native`` every chunk and the file are compared by SHA-256, several chunks are under way at once,
///   and a lost answer never makes a second copy.
/// - In ``tus`` and ``resumableUpload`` the bytes go one piece after the other, from the offset that the
///   server names. A lost answer to the request that begins the upload leaves an empty upload behind on the
///   server. The result is ``Verification/unverified`` unless the server tells the SHA-256 of what it has.
///
/// With the latter two the client's ``ClientConfiguration/serverURL`` is the URL at which uploads are begun,
/// for example `https://example.org/files/`, exactly as the server has it.
public enum UploadDialect: String, CaseIterable, Sendable, Codable {
    /// The interface of a Kedge server.
    case native
    /// tus 1.0 with the extension *creation*; *checksum* (SHA-256 or SHA-1), *expiration* and *termination*
    /// are used where the server has them.
    case tus
    /// IETF resumable uploads (draft-ietf-httpbis-resumable-upload). Begins with interop version 9, which is
    /// what the RFC will be, and takes the newest of 8 to 3, or the form without a version, when the server
    /// refuses that. Digests of the pieces go along as `Content-Digest`.
    case resumableUpload = "resumable-upload"
}
