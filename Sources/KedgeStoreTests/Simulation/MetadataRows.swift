internal import KedgeEngine
internal import KedgeModel

/// Everything that a metadata store remembers, as one value: a transaction changes a copy.
struct MetadataRows: Sendable {
    struct Session: Sendable {
        var record: SessionRecord
        /// False once its bytes are a blob, garbage, or another session's.
        var hasStaging = true
        var chunks: [Int: CommittedChunk] = [:]
        var partials: [Int: PartialRecord] = [:]
        /// In the order in which they were made.
        let number: Int
    }

    struct File: Sendable {
        var record: FileRecord
        var digests: [SHA256Digest]
    }

    struct Key: Hashable, Sendable {
        let owner: OwnerID
        let key: String
    }

    struct KeyUse: Sendable {
        let fingerprint: String
        let session: SessionID
    }

    var sessions: [SessionID: Session] = [:]
    var keys: [Key: KeyUse] = [:]
    var files: [FileID: File] = [:]
    /// When the lease of each ends; zero before anybody took it.
    var garbage: [Garbage: Int64] = [:]
    private var nextNumber = 0

    mutating func takeNumber() -> Int {
        defer { nextNumber += 1 }
        return nextNumber
    }

    var sessionsInOrder: [Session] { sessions.values.sorted { $0.number < $1.number } }

    /// - Throws: `notFound` when there is none, `wrongState` when it is in another state.
    func session(_ id: SessionID, in states: SessionState...) throws -> Session {
        guard let session = sessions[id] else { throw MetadataError.notFound }
        guard states.isEmpty || states.contains(session.record.state) else {
            throw MetadataError.wrongState(session.record.state)
        }
        return session
    }

    /// True while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) -> Bool {
        files.values.contains { $0.record.digest == digest && $0.record.deletedAt == nil }
            || sessions.values.contains {
                $0.record.finalDigest == digest && $0.record.state == .finalizing
            }
    }

    mutating func makeGarbage(unlessNeeded digest: SHA256Digest) {
        if !isNeeded(digest) { garbage[.blob(digest)] = 0 }
    }

    /// Leaves the bytes of a session, as it was before it ended, to the sweep.
    mutating func makeGarbage(ofBytesOf session: Session) {
        if session.hasStaging { garbage[.staging(session.record.stagingKey)] = 0 }
        if session.record.state == .finalizing, let digest = session.record.finalDigest {
            makeGarbage(unlessNeeded: digest)
        }
    }

    /// - Throws: `failed` when the prefix is longer than the file.
    mutating func touch(_ touch: SessionTouch) throws {
        guard var session = sessions[touch.id] else { throw MetadataError.notFound }
        session.record.expiresAt = touch.expiresAt
        if let prefix = touch.prefix { session.record.prefix = prefix }
        try session.requireFittingPrefix()
        sessions[touch.id] = session
    }
}

extension MetadataRows.Session {
    /// Offset after the last byte that a chunk or a partial claims.
    var claimedEnd: Int64 {
        let ends =
            chunks.values.map { Int64($0.index) * record.chunkSize + $0.byteCount }
            + partials.values.map { Int64($0.index) * record.chunkSize + $0.byteCount }
        return ends.max() ?? 0
    }

    /// True when the chunks cover the whole file.
    var isComplete: Bool {
        record.fileSize != nil && chunks.count == record.layout.chunkCount
            && chunks.values.reduce(0) { $0 + $1.byteCount } == record.fileSize
    }

    var progress: SessionProgress {
        SessionProgress(
            record: record, chunks: chunks.values.sorted { $0.index < $1.index },
            partials: partials.values.sorted { $0.index < $1.index })
    }

    /// The bytes are not this session's any more. It reads back with the key that it would make for
    /// itself, as from a database that has none.
    mutating func giveUpBytes() {
        hasStaging = false
        record.stagingKey = StagingKey(record.id)
        record.prefix = nil
        partials = [:]
    }

    /// True when the bytes received for this session can be those of the new one.
    func canBeAdopted(by new: SessionRecord) -> Bool {
        hasStaging && record.isAdoptable(by: new)
    }

    /// - Throws: `failed` when the prefix is longer than the file.
    func requireFittingPrefix() throws {
        guard let size = record.fileSize, let prefix = record.prefix else { return }
        guard prefix.offset <= size else {
            throw MetadataError.failed("the prefix is longer than the file")
        }
    }

    /// - Throws: `failed` when the chunk is not one of the session's.
    func requireFitting(_ chunk: CommittedChunk) throws {
        guard let range = record.layout.range(ofChunk: chunk.index), chunk.byteCount > 0,
            chunk.byteCount <= record.chunkSize,
            record.fileSize == nil || range.byteCount == chunk.byteCount
        else { throw MetadataError.failed("chunk \(chunk.index) does not fit the session") }
    }

    /// - Throws: `failed` when the partial is not a part of one of the session's chunks.
    func requireFitting(_ partial: PartialRecord) throws {
        guard let range = record.layout.range(ofChunk: partial.index), partial.byteCount > 0,
            partial.byteCount < range.byteCount
        else { throw MetadataError.failed("no part of chunk \(partial.index)") }
    }
}
