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
    case partUsedUp
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

    package init(
        maxOpenCount: Int, client: String? = nil, busy: Set<SessionID> = [],
        maxConcatenationCount: Int = 8
    ) {
        self.maxOpenCount = maxOpenCount
        self.client = client
        self.busy = busy
        self.maxConcatenationCount = maxConcatenationCount
    }
}

/// The result of committing one chunk.
package enum ChunkOutcome: Hashable, Sendable {
    case committed
    /// A row with the same digest existed; nothing changed.
    case alreadyCommitted
    /// A row with another digest existed; it stays.
    case conflict(stored: SHA256Digest)
}

/// Changes to a session that are written in the same transaction as a commit.
package struct SessionTouch: Sendable {
    package var id: SessionID
    package var expiresAt: Timestamp
    /// The checkpoint of the whole-file hash; nil keeps the stored one. It never moves back.
    package var prefix: HashCheckpoint?
    /// The fencing token under which the bytes were written, in a fleet. When another writer has
    /// taken over, nothing is written and ``MetadataError/writerReplaced`` is thrown.
    package var writer: FencingToken?
    /// Tokens of further chunks in the same commit; checked in the same way.
    package var otherWriters: [FencingToken]
    /// The revision of the session that the caller knows; nil in a single process. A prefix from
    /// before an invalidation of chunks is not recorded.
    package var revision: Int64?

    package init(
        id: SessionID, expiresAt: Timestamp, prefix: HashCheckpoint? = nil,
        writer: FencingToken? = nil, otherWriters: [FencingToken] = [], revision: Int64? = nil
    ) {
        self.id = id
        self.expiresAt = expiresAt
        self.prefix = prefix
        self.writer = writer
        self.otherWriters = otherWriters
        self.revision = revision
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

/// Bytes that no row refers to any more, for the sweep to remove.
package enum Garbage: Hashable, Sendable {
    /// The rest of a staging area, with the state that the byte store recorded for it.
    case staging(StagingKey, state: String? = nil)
    /// A blob that is named by its digest.
    case blob(SHA256Digest)
}

/// One node's lease on some work.
package struct WorkLease: Hashable, Sendable {
    /// Name of the node; a restarted node has a new one.
    package var holder: String
    package var now: Timestamp
    package var until: Timestamp

    package init(holder: String, now: Timestamp, until: Timestamp) {
        self.holder = holder
        self.now = now
        self.until = until
    }
}

/// An accepted finalize job that is not done.
package struct FinalizeJob: Hashable, Sendable {
    package var record: SessionRecord
    /// The digest that the client expects of the file.
    package var expected: SHA256Digest?

    package init(record: SessionRecord, expected: SHA256Digest?) {
        self.record = record
        self.expected = expected
    }
}

/// A position in a list of files, newest first.
package struct FileCursor: Hashable, Sendable {
    package var createdAt: Timestamp
    package var id: FileID

    package init(createdAt: Timestamp, id: FileID) {
        self.createdAt = createdAt
        self.id = id
    }

    /// The start of a list: later than every file.
    package static let beforeAll = FileCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: FileID(wellFormed: String(repeating: "f", count: 32)))
}

/// Errors common to all metadata stores.
package enum MetadataError: Error, Hashable, Sendable {
    /// There is no such session or file for this owner.
    case notFound
    /// The session's state does not allow the operation.
    case wrongState(SessionState)
    /// Another writer has taken the chunk over; nothing was written.
    case writerReplaced
    /// The rows belong to bytes in another store.
    case foreignBytes(String)
    /// The database cannot be reached, or is busy for longer than its timeout. A retry may help.
    case unavailable(String)
    /// The disk under the database is full.
    case full(String)
    /// Any other failure; nothing was changed.
    case failed(String)
}

/// Stores sessions, chunks and files.
///
/// Each operation is one transaction. It is durable on return and changes nothing when it throws.
/// Only ``MetadataError`` is thrown.
///
/// Cancelling the calling task never abandons an operation: a row that may have been written is
/// always reported.
package protocol MetadataStore: StagingRecords, ScrubRecords {
    /// Creates a session, or finds the one that the key created before.
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

    /// Records chunks whose bytes are durable, and drops their partials and rivals. The first write
    /// wins.
    ///
    /// - Returns: One outcome per chunk, in order. With any conflict nothing is written.
    /// - Throws: `wrongState` unless the session is open, `notFound` when it is gone.
    func commit(_ chunks: [CommittedChunk], touching session: SessionTouch) async throws
        -> [ChunkOutcome]

    /// Records the durable first bytes of a chunk and replaces the earlier record. A partial and a
    /// rival do not replace each other. A committed chunk does not change.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when another writer has the chunk, or has saved
    ///   this partial since the touch's writer got the chunk.
    func savePartial(_ partial: PartialRecord, touching session: SessionTouch) async throws

    /// Deletes the record of a chunk's partial or rival.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` as ``savePartial(_:touching:)`` does.
    func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws

    /// Sets the size of a session whose size was unknown.
    ///
    /// - Throws: `wrongState` when the size is already known and different.
    func declareSize(_ byteCount: Int64, of id: SessionID) async throws

    /// Invalidates chunks whose bytes are missing or damaged, so that the client sends them again.
    /// Also drops every partial and rival, the prefix and the finalize job.
    func dropChunks(_ indexes: [Int], of id: SessionID) async throws

    /// Invalidates all chunks, for a writer that found saved bytes gone. Also drops the state that
    /// the byte store recorded for the area.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when the writer's lease was taken over, chunks
    ///   were invalidated since its revision, or a finalize job exists. `wrongState` unless the
    ///   session is open.
    func invalidateChunks(touching session: SessionTouch) async throws

    /// Moves an open session to `finalizing` and records the digest and id of its file. Idempotent:
    /// returns the values stored first.
    func beginFinalize(of id: SessionID, digest: SHA256Digest, fileID: FileID) async throws
        -> SessionRecord

    /// Creates the file and moves the session to `completed`, in one transaction. Idempotent:
    /// returns the same file.
    ///
    /// The new bytes become the blob of every file with this digest, and are due for a scrub.
    ///
    /// - Parameters:
    ///   - location: The blob's location in the byte store; nil when it is named by its digest.
    ///     With a location, the rest of the staging area becomes garbage, and the blob's previous
    ///     copy is kept as a ``SupersededBlob``.
    ///   - keepUntil: The time until which readers may still read that copy.
    func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord

    /// Moves a finalizing session back to `open`, because its bytes are missing.
    func reopen(_ id: SessionID) async throws

    /// Creates a finalize job for a session, and leases it. A second call by the holder renews the
    /// lease. The session does not expire before the lease. Completing, reopening and canceling the
    /// session end the job.
    ///
    /// - Parameter expected: The digest that the client expects of the file; nil keeps the earlier
    ///   one.
    /// - Returns: False while another node has the lease.
    /// - Throws: `notFound`; `wrongState` unless the session is open or finalizing.
    func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool
    /// Renews the lease; does nothing when the job is gone or another node has it.
    func renewFinalize(of id: SessionID, lease: WorkLease) async throws
    /// Removes a finalize job that has failed or cannot succeed. Does nothing while another node
    /// has the lease.
    func dropFinalize(of id: SessionID, by lease: WorkLease) async throws
    /// Leases finalize jobs whose holder is gone, as ``takeFinalize(of:expecting:lease:)`` does.
    /// Concurrent callers get different jobs.
    func takeAbandonedFinalizes(lease: WorkLease, limit: Int) async throws -> [FinalizeJob]
    /// Records the checkpoint of the whole-file hash if it is past the recorded one.
    ///
    /// - Parameter revision: The revision that the caller knows, as ``SessionTouch/revision``.
    func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws

    /// Moves a session that is not completed to `canceled`, deletes its chunks and turns its bytes
    /// into garbage. Idempotent.
    func cancelSession(_ id: SessionID, owner: OwnerID) async throws

    /// Returns the file, deleted or not; nil when this owner never had such a file.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord?
    /// Returns up to `limit` files that are not deleted, newest first.
    func files(of owner: OwnerID, after: FileCursor?, limit: Int) async throws -> [FileRecord]
    /// Returns the digests of a file's chunks, in order.
    func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest]
    /// Deletes a file. Its blob becomes garbage with the last file that has it. Idempotent.
    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws

    /// Returns the location of the blob that the area became, while a file needs it or it is kept
    /// as a superseded copy. Nil otherwise, and for blobs named by their digest.
    func blobLocation(fromStaging key: StagingKey) async throws -> String?
    /// Adds a staging area to the garbage, for bytes that arrived after its session had ended. Does
    /// nothing while a session has the area.
    func leaveToSweep(_ key: StagingKey) async throws

    /// Returns true while a session or the garbage names these bytes.
    func isKnown(_ key: StagingKey) async throws -> Bool

    /// Returns the sessions that are open or finalizing, for the recovery at start.
    func unfinishedSessions() async throws -> [UnfinishedSession]
    /// Returns the sessions that are finalizing: those in progress, and those that an error left
    /// behind.
    func finalizingSessions() async throws -> [SessionRecord]
    /// Returns open final uploads in the order of their ids, those after the given one.
    func openConcatenations(after: SessionID?, limit: Int) async throws -> [SessionRecord]
    /// Marks open sessions past their expiry as `expired`, apart from those with a finalize job.
    /// Deletes expired and canceled sessions, and completed ones whose file is gone, that expired
    /// before `graceEnd`. Their bytes become garbage.
    ///
    /// - Returns: The sessions that this call expired or deleted.
    func expireSessions(now: Timestamp, graceEnd: Timestamp, limit: Int) async throws
        -> [SessionID]
    /// Leases garbage to this node for removal. Drops blobs that a file or a finalizing session
    /// needs again from the garbage instead.
    func claimGarbage(now: Timestamp, leaseUntil: Timestamp, limit: Int) async throws -> [Garbage]
    /// Deletes the row of garbage whose bytes are gone. The row stays when the garbage was added
    /// again, or claimed by another node, since the claim that ends at `end`.
    func forgetGarbage(_ garbage: Garbage, claimedUntil end: Timestamp) async throws
    /// Returns true while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) async throws -> Bool

    /// Binds the rows to a byte store. The first call decides: nodes that share rows must share
    /// bytes, too.
    ///
    /// - Throws: ``MetadataError/foreignBytes(_:)`` when the rows belong to another byte store.
    func bind(toBytesAt identity: String) async throws

    /// Checks that the store replies and can write.
    func checkHealth() async throws
    /// Waits for all work to end and closes the store. No call may follow.
    func close() async throws
}

extension MetadataStore {
    /// Creates a session without a limit on open sessions.
    package func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?
    ) async throws -> CreateOutcome {
        try await createSession(
            record, idempotencyKey: idempotencyKey, adopting: adopting, in: nil)
    }

    /// Deletes the record of a chunk's partial, but not of its rival.
    package func discardPartial(
        of id: SessionID, index: Int, by writer: FencingToken?
    ) async throws {
        try await discardPartial(of: id, index: index, isRival: false, by: writer)
    }
}
