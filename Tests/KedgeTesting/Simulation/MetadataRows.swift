internal import KedgeEngine
internal import KedgeModel

/// The rows of a metadata store as one value: a transaction changes a copy.
struct MetadataRows: Sendable {
    struct Session: Sendable {
        var record: SessionRecord
        /// False once its bytes are a blob, garbage, or another session's.
        var hasStaging = true
        /// The state that the byte store recorded for the bytes.
        var stagingState: String?
        /// The finalize job, if any.
        var job: Job?
        var chunks: [Int: CommittedChunk] = [:] {
            didSet { if !chunks.isEmpty { isEmpty = false } }
        }
        var partials: [Int: PartialRecord] = [:] {
            didSet { if !partials.isEmpty { isEmpty = false } }
        }
        var rivals: [Int: PartialRecord] = [:]
        /// The network of the client that created it.
        var client: String?
        /// True until its first byte.
        var isEmpty = false
        /// Bytes reserved for it; nil for its file size.
        var reservedBytes: Int64?
        /// Number of final uploads made of it.
        var concatenationCount = 0
        /// Number in the order of creation.
        let number: Int
    }

    struct Job: Sendable {
        var expected: SHA256Digest?
        var holder: String
        var leaseUntil: Int64
    }

    struct Blob: Sendable {
        let stagingKey: StagingKey
        let location: String
    }

    /// An item of garbage, whatever is recorded for it.
    enum GarbageKey: Hashable, Sendable {
        case staging(StagingKey)
        case blob(SHA256Digest)
    }

    struct GarbageRow: Sendable {
        var garbage: Garbage
        /// The end of its lease; zero before the first claim.
        var leaseUntil: Int64 = 0
    }

    struct File: Sendable {
        var record: FileRecord
        var digests: [SHA256Digest]
    }

    /// The scrub's knowledge of the bytes of a blob.
    struct Scrub: Sendable {
        var byteCount: Int64
        var generation: Int64
        var verifiedAt: Timestamp?
        var storedAt: Timestamp?
        var damagedAt: Timestamp?
        var dueAt: Timestamp
        var checkedByteCount: Int64 = 0
        var holder: String?
        var leaseUntil: Int64 = 0

        var isNew: Bool { verifiedAt == nil && damagedAt == nil }
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
    /// The use of a link that each session is.
    var linkUses: [SessionID: LinkUse] = [:]
    var files: [FileID: File] = [:]
    var garbage: [GarbageKey: GarbageRow] = [:]
    var blobs: [SHA256Digest: Blob] = [:]
    var scrubs: [SHA256Digest: Scrub] = [:]
    var superseded: [SupersededBlob] = []
    var byteStoreIdentity: String?
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
        if !isNeeded(digest) { add(.blob(digest)) }
    }

    mutating func add(_ new: Garbage) {
        var new = new
        if case .staging(let key, nil) = new,
            case .staging(_, let state)? = garbage[new.rowKey]?.garbage
        {
            new = .staging(key, state: state)
        }
        garbage[new.rowKey] = GarbageRow(garbage: new)
    }

    /// Leaves the bytes of a session, as it was before it ended, to the sweep.
    mutating func makeGarbage(ofBytesOf session: Session) {
        if session.hasStaging {
            add(.staging(session.record.stagingKey, state: session.stagingState))
        }
        if session.record.state == .finalizing, let digest = session.record.finalDigest {
            makeGarbage(unlessNeeded: digest)
        }
    }

    /// - Throws: `failed` when the prefix is longer than the file.
    mutating func touch(_ touch: SessionUpdate) throws {
        guard var session = sessions[touch.id] else { throw MetadataError.notFound }
        session.record.expiresAt = touch.expiresAt
        if let prefix = touch.prefix { session.advance(to: prefix) }
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
            partials: partials.values.sorted { $0.index < $1.index }
                + rivals.values.sorted { $0.index < $1.index })
    }

    /// Releases the bytes, which do not belong to this session any more. It reads back with the key
    /// that it would make for itself, as from a database without one.
    mutating func giveUpBytes() {
        hasStaging = false
        stagingState = nil
        job = nil
        record.stagingKey = StagingKey(record.id)
        record.prefix = nil
        partials = [:]
        rivals = [:]
    }

    /// Advances the hash, which never goes back.
    mutating func advance(to prefix: HashCheckpoint) {
        if prefix.offset > record.prefix?.offset ?? -1 { record.prefix = prefix }
    }

    /// Whether the bytes received for this session can be those of the new one.
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
            partial.byteCount < range.byteCount,
            !partial.isRival || partial.declaredDigest != nil && !partial.isInDoubt
        else { throw MetadataError.failed("no part of chunk \(partial.index)") }
    }
}

extension Garbage {
    var rowKey: MetadataRows.GarbageKey {
        switch self {
        case .staging(let key, _): .staging(key)
        case .blob(let digest): .blob(digest)
        }
    }
}
