package import KedgeModel

/// An upload as somebody sees it who may go on with it.
package struct UploadView: Sendable {
    package let id: SessionID
    package let state: SessionState
    /// Bytes from the start that are durable without a gap. Never less than what was told before.
    package let offset: Int64
    /// Size of the file in bytes; nil while unknown.
    package let fileSize: Int64?
    package let fileName: String
    package let mimeType: String?
    package let metadata: [String: String]
    /// The uploads whose bytes this one gets; nil for one whose bytes come from a client.
    package let parts: [SessionID]?
    package let createdAt: Timestamp
    package let expiresAt: Timestamp
    /// The file that the upload has become; nil before.
    package let fileID: FileID?
    /// SHA-256 of the file; nil before finalizing began.
    package let finalDigest: SHA256Digest?
    /// What the client said that the file's SHA-256 will be.
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
        parts = record.parts
        createdAt = record.createdAt
        expiresAt = record.expiresAt
        fileID = record.state == .completed ? record.fileID : nil
        finalDigest = record.finalDigest
        declaredDigest = record.declaredDigest
    }
}
