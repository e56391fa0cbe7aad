internal import HTTPTypes
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// Client for a protocol that appends bytes to an upload. Each method sends one request, without
/// retries, except where creation has to find the protocol's version.
///
/// Failures are ``RequestFailure``, or `TransferError` where a retry cannot help.
protocol SequentialUploadClient: Sendable {
    /// Returns the server's capabilities before anything is sent; defaults where it reports none.
    func discover() async throws -> ServerCapabilities

    /// Creates an upload.
    func create(_ description: UploadDescription) async throws -> CreatedUpload

    /// Returns the state of an upload as the server reports it.
    func state(of address: UploadAddress) async throws -> UploadState

    /// Appends bytes at the upload's offset.
    func append(
        _ part: AppendBody, to address: UploadAddress,
        onBytesSent: @escaping @Sendable (Int64) -> Void
    ) async throws -> UploadState

    /// Removes an upload from the server.
    func remove(_ address: UploadAddress) async throws
}

/// Name, type, size, digest and metadata of the file to upload.
struct UploadDescription: Sendable {
    let fileName: String
    let mimeType: String?
    /// Size in bytes; nil while it is unknown, which only IETF uploads support here.
    let byteCount: Int64?
    /// SHA-256 of the whole file, if already known.
    let digest: SHA256Digest?
    /// Text to store with the file; sent with tus only.
    let metadata: [String: String]
}

/// A newly created upload.
struct CreatedUpload: Sendable {
    let address: UploadAddress
    /// Nil if the answer does not contain the state, which then has to be requested.
    let state: UploadState?
}

/// State of an upload on the server.
struct UploadState: Sendable {
    /// Contiguous bytes from the start that the server has.
    var offset: Int64
    /// True if the server needs nothing more.
    var isComplete: Bool
    /// Size that the server expects, if reported.
    var byteCount: Int64?
    /// Expiry unless more bytes arrive, if reported.
    var expiresAt: Timestamp?
    /// Limits in the answer; nil for none.
    var capabilities: ServerCapabilities?
    /// Digest and id that the server reported. Unusable before the upload is complete: the digest
    /// may cover only the bytes so far.
    var reportedFile = ReportedFile()
    /// Answer from which the state was read.
    var answer: ServerAnswer?
}

/// Digest and id that a server reports for the finished file.
struct ReportedFile: Sendable, Equatable {
    /// SHA-256 that the server computed.
    var digest: SHA256Digest?
    /// Id of the file on a Kedge server.
    var file: FileID?
}

/// Body of one request.
struct AppendBody: Sendable {
    /// Position in the file.
    let range: ByteRange
    let body: TransportBody
    /// Checksum of the bytes, if one is sent.
    let checksum: BodyChecksum?
    /// True for the last body.
    let isLast: Bool
}

/// Checksum with its algorithm.
struct BodyChecksum: Sendable, Equatable {
    let algorithm: ChecksumAlgorithm
    let bytes: [UInt8]
}
