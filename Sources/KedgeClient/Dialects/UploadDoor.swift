internal import HTTPTypes
internal import KedgeHash
internal import KedgeModel

/// A protocol that appends to an upload at an address, seen from the client: one method per request,
/// nothing is retried here.
///
/// Failures are ``RequestFailure``; `TransferError` for what no waiting cures.
protocol UploadDoor: Sendable {
    /// What the server says of itself, before anything is sent; the defaults where it says nothing.
    func discover() async throws -> UploadOffer

    /// Begins an upload.
    func create(_ description: UploadDescription) async throws -> CreatedUpload

    /// How far an upload has come, by the server's own word.
    func state(of address: UploadAddress) async throws -> UploadState

    /// Appends bytes at the offset where the upload stands.
    func append(
        _ piece: UploadPiece, to address: UploadAddress,
        onBytesSent: @escaping @Sendable (Int64) -> Void
    ) async throws -> UploadState

    /// Gives an upload up.
    func remove(_ address: UploadAddress) async throws
}

/// What a server says of itself. Nil where it says nothing.
struct UploadOffer: Sendable, Equatable {
    /// Bytes that an upload may have.
    var maxSize: Int64?
    /// Bytes that one request may carry.
    var maxAppendSize: Int64?
    /// Bytes that each request but the last must carry.
    var minAppendSize: Int64?
    /// The checksum that goes along with each request.
    var checksum: ChecksumAlgorithm?
    /// False when the server says that uploads cannot be removed.
    var offersRemoval = true

    /// Takes over what a later answer says.
    mutating func update(with newer: UploadOffer?) {
        maxSize = newer?.maxSize ?? maxSize
        maxAppendSize = newer?.maxAppendSize ?? maxAppendSize
        minAppendSize = newer?.minAppendSize ?? minAppendSize
    }
}

/// What is uploaded.
struct UploadDescription: Sendable {
    let fileName: String
    let mimeType: String?
    let byteCount: Int64
    /// SHA-256 of the whole file, when it is known before.
    let digest: SHA256Digest?
}

/// Where an upload is, and how it is spoken to.
struct UploadAddress: Sendable, Equatable {
    let url: String
    /// Version of the IETF draft; nil for the form without one, and for other protocols.
    let interopVersion: Int?
}

/// An upload that was just begun.
struct CreatedUpload: Sendable {
    let address: UploadAddress
    /// Nil when the answer does not say: then the upload itself must know.
    let state: UploadState?
}

/// Where an upload stands.
struct UploadState: Sendable {
    /// Bytes from the start that the server keeps.
    var offset: Int64
    /// True when the server needs nothing more.
    var isComplete: Bool
    /// The size that the server expects, when it says.
    var byteCount: Int64?
    /// When the upload expires unless bytes arrive, when the server says.
    var expiresAt: Timestamp?
    /// Limits in the answer; nil for none.
    var offer: UploadOffer?
    /// What the server told of the file. Of an upload that is not complete it is no use: it may be about
    /// the bytes so far.
    var evidence = UploadEvidence()
    /// The answer behind this.
    var answer: ServerAnswer?
}

/// What a server tells of the finished file.
struct UploadEvidence: Sendable, Equatable {
    /// SHA-256 that the server computed.
    var digest: SHA256Digest?
    /// Its id at a Kedge server.
    var file: FileID?
}

/// Bytes of one request.
struct UploadPiece: Sendable {
    /// Where they lie in the file.
    let range: ByteRange
    let body: TransportBody
    /// Checksum of them, when one goes along.
    let checksum: PieceChecksum?
    /// True when nothing follows.
    let isLast: Bool
}

/// A checksum with its algorithm.
struct PieceChecksum: Sendable, Equatable {
    let algorithm: ChecksumAlgorithm
    let bytes: [UInt8]
}
