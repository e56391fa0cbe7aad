package import KedgeModel

/// Key of an idempotent create, with a fingerprint of its request.
package struct IdempotencyKey: Hashable, Sendable {
    package var key: String
    package var fingerprint: String

    package init(key: String, fingerprint: String) {
        self.key = key
        self.fingerprint = fingerprint
    }
}

/// The result of creating a session.
package enum CreateOutcome: Sendable {
    case created(SessionRecord)
    /// The key was used for the same request before; this is the session created then.
    case replayed(SessionRecord)
    /// A new session; the store dropped another one, which had no bytes.
    case createdInstead(SessionRecord, of: SessionID)
    /// The key was used for a different request.
    case keyConflict
    /// The maximum of open sessions is reached, and each has bytes. Nothing was created.
    case full
    /// One of the partial uploads is already in the maximum of final uploads. Nothing was created.
    case sourceUsedUp
    /// The link has created its maximum of sessions. Nothing was created.
    case linkUsed
    /// The owner would exceed a limit. Nothing was created.
    case quotaExceeded(QuotaRefusal)
}

/// The limits for a new session, and the client that creates it.
package struct SessionRoom: Hashable, Sendable {
    /// Maximum number of sessions that are open at once.
    package var maxOpenCount: Int
    /// The network of the client; nil when it is unknown.
    package var client: String?
    /// Sessions whose first bytes are arriving in this process; they are not dropped to make room.
    package var busy: Set<SessionID>
    /// Maximum number of final uploads that one partial upload can be in over its life: each copies
    /// its bytes.
    package var maxConcatenationCount: Int
    /// The link whose use the new session is; nil for none.
    package var link: LinkUse?
    /// The limits of an owner without limits of its own.
    package var quota: QuotaLimits

    package init(
        maxOpenCount: Int, client: String? = nil, busy: Set<SessionID> = [],
        maxConcatenationCount: Int = 8, link: LinkUse? = nil, quota: QuotaLimits = .none
    ) {
        self.maxOpenCount = maxOpenCount
        self.client = client
        self.busy = busy
        self.maxConcatenationCount = maxConcatenationCount
        self.link = link
        self.quota = quota
    }
}

/// An unfinished session as a recovery needs it.
package struct UnfinishedSession: Hashable, Sendable {
    package var record: SessionRecord
    /// Offset after the last byte of any committed chunk or partial.
    package var claimedEnd: Int64

    package init(record: SessionRecord, claimedEnd: Int64) {
        self.record = record
        self.claimedEnd = claimedEnd
    }
}

/// A position in a list of sessions, newest first.
package struct SessionCursor: Hashable, Sendable {
    package var createdAt: Timestamp
    package var id: SessionID

    package init(createdAt: Timestamp, id: SessionID) {
        self.createdAt = createdAt
        self.id = id
    }

    /// The position of a session.
    package init(_ session: SessionRecord) {
        self.init(createdAt: session.createdAt, id: session.id)
    }

    /// The start of a list: later than every session.
    package static let beforeAll = SessionCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: SessionID(wellFormed: String(repeating: "f", count: 32)))
}

/// A session that is open or finalizing, with the number of its durable bytes.
package struct UnfinishedUpload: Hashable, Sendable {
    package var record: SessionRecord
    /// Bytes of complete chunks and of partials; rivals do not count. Nil from
    /// ``maxCountedChunkCount`` chunks on: a list must not read millions of rows.
    package var receivedByteCount: Int64?
    package static let maxCountedChunkCount = 16_384

    package init(record: SessionRecord, receivedByteCount: Int64?) {
        self.record = record
        self.receivedByteCount = receivedByteCount
    }
}

/// Stores sessions, from their creation until they expire. Each operation is one transaction, as in
/// ``MetadataStore``.
package protocol SessionStore: Sendable {
    /// Creates a session, or finds the one that the key created before.
    ///
    /// A new session reserves its size, and one that is made of others the known sizes of these.
    /// One that adopts the bytes of an open session takes over its place and reservation. Any other
    /// must fit the limits of its owner.
    ///
    /// - Parameters:
    ///   - adopting: An expired session of the same owner, file size and chunk size that is still
    ///     stored. Its staging key, chunks, partials and prefix move to the new session. When it
    ///     does not fit or is gone, the new session starts empty; that is not an error.
    ///   - room: Limits for open sessions; nil for none. At the limit, the store drops the oldest
    ///     session without bytes of the client that has the most of those. This happens in the same
    ///     transaction, so nodes that create at once keep the limit together. A session that adopts
    ///     the bytes of an open one needs no room.
    func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws -> CreateOutcome

    /// Returns the session with everything received, or nil when this owner has no such session.
    func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress?

    /// Returns up to `limit` sessions that are open or finalizing, newest first.
    func unfinishedSessions(
        of owner: OwnerID, after: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload]

    /// Sets the size of a session whose size was unknown, and reserves exactly that.
    ///
    /// - Parameter quota: The limits of an owner without limits of its own.
    /// - Throws: `wrongState` when the size is already known and different; `quotaExceeded`.
    func declareSize(
        _ byteCount: Int64, of id: SessionID, within quota: QuotaLimits
    ) async throws

    /// Returns what the owner has stored and reserved, with the limits that apply.
    ///
    /// - Parameter quota: The limits of an owner without limits of its own.
    func quota(of owner: OwnerID, within quota: QuotaLimits) async throws -> OwnerQuota

    /// Moves a session that is not completed to `canceled`, deletes its chunks and turns its bytes
    /// into garbage. Idempotent.
    func cancelSession(_ id: SessionID, owner: OwnerID) async throws

    /// Marks open sessions past their expiry as `expired`, apart from those with a finalize job.
    /// Deletes expired and canceled sessions, and completed ones whose file is gone, that expired
    /// before `graceEnd`. Their bytes become garbage.
    ///
    /// - Returns: The sessions that this call expired or deleted.
    func expireSessions(now: Timestamp, graceEnd: Timestamp, limit: Int) async throws
        -> [SessionID]

    /// Returns the sessions that are open or finalizing, for the recovery at start.
    func unfinishedSessions() async throws -> [UnfinishedSession]

    /// Returns open final uploads in the order of their ids, those after the given one.
    func openConcatenations(after: SessionID?, limit: Int) async throws -> [SessionRecord]
}

extension SessionStore {
    /// Creates a session without a limit on open sessions.
    package func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?
    ) async throws -> CreateOutcome {
        try await createSession(
            record, idempotencyKey: idempotencyKey, adopting: adopting, in: nil)
    }

    /// Sets the size of a session whose owner has no limits.
    package func declareSize(_ byteCount: Int64, of id: SessionID) async throws {
        try await declareSize(byteCount, of: id, within: .none)
    }
}
