package import KedgeModel

/// An upload as a client sees it that may resume it.
package struct UploadView: Sendable {
    package let id: SessionID
    package let state: SessionState
    /// Number of contiguous durable bytes from the start. It decreases only if acknowledged bytes
    /// were lost or damaged.
    package let offset: Int64
    /// Size of the file in bytes; nil while unknown.
    package let fileSize: Int64?
    package let fileName: String
    package let mimeType: String?
    package let metadata: [String: String]
    /// The partial uploads of a final upload; nil for an upload whose bytes come from a client.
    package let sourceIDs: [SessionID]?
    package let createdAt: Timestamp
    package let expiresAt: Timestamp
    /// The file that the upload has become; nil before.
    package let fileID: FileID?
    /// SHA-256 of the file; nil before finalizing began.
    package let finalDigest: SHA256Digest?
    /// SHA-256 of the file as the client declared it.
    package let declaredDigest: SHA256Digest?

    init(_ ledger: SessionLedger) {
        let record = ledger.record
        id = record.id
        state = record.state
        offset = ledger.contiguousOffset
        fileSize = record.fileSize
        fileName = record.fileName
        mimeType = record.mimeType
        metadata = record.metadata
        sourceIDs = record.sourceIDs
        createdAt = record.createdAt
        expiresAt = record.expiresAt
        fileID = record.state == .completed ? record.fileID : nil
        finalDigest = record.finalDigest
        declaredDigest = record.declaredDigest
    }
}
