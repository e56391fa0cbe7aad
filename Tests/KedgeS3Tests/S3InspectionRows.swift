import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting

/// Rows in memory, as a test sets them.
struct S3InspectionRows: CheckedRows {
    private var sessions: [SessionRecord] = []
    private var chunks: [SessionID: [CommittedChunk]] = [:]
    private var partials: [SessionID: [PartialRecord]] = [:]
    private var files: [FileRecord] = []
    private var known: Set<StagingKey> = []
    /// Whether all sessions and files have ended by the second look.
    var hasEnded = false
    /// Called before the rows report a key as unknown.
    var willDisown: @Sendable (StagingKey) async throws -> Void = { _ in }

    /// Adds a session with the upload's chunks, and optionally a partial of one more.
    mutating func add(
        _ upload: SmallUpload, partial: (index: Int, byteCount: Int, location: String?)? = nil
    ) -> SessionRecord {
        let record = SessionRecord(
            id: .random(), owner: Sample.owner, stagingKey: upload.key, fileName: "file",
            mimeType: nil, fileSize: Int64(upload.content.count),
            chunkSize: Int64(SmallUpload.chunkByteCount), declaredDigest: nil, metadata: [:],
            state: .open, createdAt: Sample.time(0), expiresAt: Sample.time(1000))
        sessions.append(record)
        known.insert(upload.key)
        chunks[record.id] = upload.file.chunks
        guard let partial else { return record }
        var hasher = SHA256Hasher()
        let start = partial.index * SmallUpload.chunkByteCount
        hasher.update(Array(upload.content[start..<start + partial.byteCount]))
        partials[record.id] = [
            PartialRecord(
                index: partial.index, byteCount: Int64(partial.byteCount),
                hashState: hasher.savedState, declaredDigest: nil, location: partial.location)
        ]
        return record
    }

    /// Adds a file that was made from the upload.
    mutating func add(_ upload: SmallUpload, at name: BlobName) -> FileRecord {
        let session = SessionID.random()
        let record = FileRecord(
            id: .random(), owner: Sample.owner, sessionID: session, fileName: "file",
            mimeType: nil, byteCount: name.byteCount, digest: name.digest,
            chunkSize: Int64(SmallUpload.chunkByteCount), createdAt: Sample.time(0),
            location: name.location)
        files.append(record)
        chunks[session] = upload.file.chunks
        known.insert(upload.key)
        return record
    }

    func databaseFaults() async throws -> [CheckFinding] { [] }
    func byteStoreIdentity() async throws -> String? { nil }
    func quotaDrifts(after: OwnerID?, limit: Int) async throws -> [QuotaDrift] { [] }
    func promisedByteCount() async throws -> Int64 { 0 }

    func sessionsWithBytes(after id: SessionID?, limit: Int) async throws -> [SessionRecord] {
        id == nil ? sessions : []
    }

    func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord? {
        hasEnded ? nil : sessions.first { $0.id == id }
    }

    /// Pages of three, so that a session has several, each with several parts.
    func chunks(of id: SessionID, from index: Int, limit: Int) async throws -> [CommittedChunk] {
        Array((chunks[id] ?? []).filter { $0.index >= index }.prefix(3))
    }

    func partials(of id: SessionID, from index: Int, limit: Int) async throws -> [PartialRecord] {
        (partials[id] ?? []).filter { $0.index >= index }
    }

    func liveFiles(after file: FileRecord?, limit: Int) async throws -> [FileRecord] {
        file == nil ? files : []
    }

    func liveFile(_ id: FileID) async throws -> FileRecord? {
        hasEnded ? nil : files.first { $0.id == id }
    }

    func isKnown(_ bytes: StoredBytes) async throws -> Bool {
        guard case .staging(let key) = bytes, !known.contains(key) else { return true }
        try await willDisown(key)
        return false
    }
}
