package import KedgeModel

/// Key of an idempotent create, with a fingerprint of the request it was used for.
package struct IdempotencyKey: Hashable, Sendable {
    package var key: String
    package var fingerprint: String

    package init(key: String, fingerprint: String) {
        self.key = key
        self.fingerprint = fingerprint
    }
}

/// What creating a session came to.
package enum CreateOutcome: Sendable {
    case created(SessionRecord)
    /// The same key and the same request came before; this is the session made then.
    case replayed(SessionRecord)
    /// A new session, for which another one was forgotten: it had no byte.
    case createdInstead(SessionRecord, of: SessionID)
    /// The key was used for another request.
    case keyConflict
    /// There are as many open sessions as may be, and each has bytes. Nothing was created.
    case full
    /// As many uploads as may be were made of one of the parts. Nothing was created.
    case partUsedUp
}

/// How many open sessions there may be and how many made of one part, and who begins one more.
package struct SessionRoom: Hashable, Sendable {
    /// Most sessions that are open at once.
    package var maxOpenCount: Int
    /// The network of the client; nil when it is not known.
    package var client: String?
    /// Sessions whose first bytes are on their way through this process: they make no room.
    package var busy: Set<SessionID>
    /// Most uploads that one session can be a part of, over its life: each has a copy of its bytes.
    package var maxCompositionCount: Int

    package init(
        maxOpenCount: Int, client: String? = nil, busy: Set<SessionID> = [],
        maxCompositionCount: Int = 8
    ) {
        self.maxOpenCount = maxOpenCount
        self.client = client
        self.busy = busy
        self.maxCompositionCount = maxCompositionCount
    }
}

/// What committing one chunk came to.
package enum ChunkOutcome: Hashable, Sendable {
    case committed
    /// A row with the same digest was there; nothing changed.
    case alreadyCommitted
    /// A row with another digest was there; it stays.
    case conflict(stored: SHA256Digest)
}

/// What a session takes along with a commit; written in the same transaction.
package struct SessionTouch: Sendable {
    package var id: SessionID
    package var expiresAt: Timestamp
    /// How far the whole-file hash has come; nil leaves the stored one. It never goes back.
    package var prefix: HashCheckpoint?
    /// The lease under which the bytes were written, in a fleet. When another writer has taken over, nothing
    /// is written and ``MetadataError/writerReplaced`` thrown.
    package var writer: WriterToken?
    /// Further leases, when several chunks are committed at once; checked in the same way.
    package var otherWriters: [WriterToken]
    /// What the caller knows of the session; nil in a process that is alone. A prefix from before chunks were
    /// taken back is not recorded.
    package var revision: Int64?

    package init(
        id: SessionID, expiresAt: Timestamp, prefix: HashCheckpoint? = nil,
        writer: WriterToken? = nil, otherWriters: [WriterToken] = [], revision: Int64? = nil
    ) {
        self.id = id
        self.expiresAt = expiresAt
        self.prefix = prefix
        self.writer = writer
        self.otherWriters = otherWriters
        self.revision = revision
    }
}

/// What a recovery needs to know of an unfinished session.
package struct UnfinishedSession: Hashable, Sendable {
    package var record: SessionRecord
    /// Offset after the last byte that a committed chunk or a partial claims.
    package var claimedEnd: Int64

    package init(record: SessionRecord, claimedEnd: Int64) {
        self.record = record
        self.claimedEnd = claimedEnd
    }
}

/// Bytes that no row refers to any more and that a sweep removes.
package enum Garbage: Hashable, Sendable {
    /// What is left of a staging area, with what the byte store recorded for it.
    case staging(StagingKey, state: String? = nil)
    /// A blob that is named by its digest.
    case blob(SHA256Digest)
}

/// One node's hold on a piece of work, until a time.
package struct WorkLease: Hashable, Sendable {
    /// Names the node; a restarted one has another name.
    package var holder: String
    package var now: Timestamp
    package var until: Timestamp

    package init(holder: String, now: Timestamp, until: Timestamp) {
        self.holder = holder
        self.now = now
        self.until = until
    }
}

/// A finalize that was promised to a client and is not done.
package struct FinalizeJob: Hashable, Sendable {
    package var record: SessionRecord
    /// What the client expects the file to be.
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

    /// Where a list starts: later than every file.
    package static let beforeAll = FileCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: FileID(wellFormed: String(repeating: "f", count: 32)))
}

/// Errors that every store reports alike.
package enum MetadataError: Error, Hashable, Sendable {
    /// There is no such session or file for this owner.
    case notFound
    /// The session's state does not allow the operation.
    case wrongState(SessionState)
    /// Another writer has taken the chunk over; nothing was written.
    case writerReplaced
    /// The rows are about bytes in another place.
    case foreignBytes(String)
    /// The database cannot be reached, or is busy beyond its patience: trying again may help.
    case unavailable(String)
    /// The disk under the database is full.
    case full(String)
    /// Anything else; nothing was changed.
    case failed(String)
}

/// Where sessions, chunks and files are remembered. Each operation is one transaction, durable when
/// it returns, and changes nothing when it throws. Only ``MetadataError`` is thrown.
///
/// An operation is never abandoned because the calling task is cancelled: a row that may have been
/// written is always reported.
package protocol MetadataStore: StagingRecords, ScrubRecords {
    /// Creates a session, or finds the one that the key made before.
    ///
    /// - Parameter adopting: An expired, still remembered session of the same owner, file size and
    ///   chunk size hands its staging key, chunks, partials and prefix to the new one. When it does
    ///   not fit or is gone, the new session starts empty; that is not an error (R129).
    /// - Parameter room: Bounds the open sessions. When there is no room for one more, the oldest
    ///   without a byte of the client that has most of those is forgotten: that takes part in the same
    ///   transaction, so nodes that create at once keep the bound together. A session that adopts the
    ///   bytes of an open one needs no room. Nil for no bound.
    func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws -> CreateOutcome

    /// The session with everything received, or nil when this owner has none of that id.
    func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress?

    /// Records chunks whose bytes are durable; their partials and rivals go. First write wins.
    ///
    /// - Returns: One outcome a chunk, in order. With any conflict nothing is written.
    /// - Throws: `wrongState` unless the session is open, `notFound` when it is gone.
    func commit(_ chunks: [CommittedChunk], touching session: SessionTouch) async throws
        -> [ChunkOutcome]

    /// Records the durable first bytes of a chunk, replacing what was recorded for it before; a partial and a
    /// rival do not replace each other. A committed chunk is left alone.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when another writer has the chunk, or has saved this partial
    ///   since the touch's writer got the chunk.
    func savePartial(_ partial: PartialRecord, touching session: SessionTouch) async throws

    /// Forgets the partial of a chunk, or its rival.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` as ``savePartial(_:touching:)``.
    func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: WriterToken?
    ) async throws

    /// Sets the size of a session whose size was unknown.
    ///
    /// - Throws: `wrongState` when the size is already known and another.
    func declareSize(_ byteCount: Int64, of id: SessionID) async throws

    /// Takes back chunks whose bytes are missing or damaged, so that the client sends them again,
    /// and every partial and rival, the prefix and a promised finalize with them.
    func dropChunks(_ indexes: [Int], of id: SessionID) async throws

    /// The same for all chunks, by a writer that found that what was saved before is gone; what the byte store
    /// recorded for the area goes with them.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when the writer has no say any more: its lease was taken over,
    ///   chunks were taken back since its revision, or a finalize is promised. `wrongState` unless the session
    ///   is open.
    func takeBackChunks(touching session: SessionTouch) async throws

    /// Moves an open session to `finalizing` with the digest and file id it will have. Asked again,
    /// it answers the values stored first.
    func beginFinalize(of id: SessionID, digest: SHA256Digest, fileID: FileID) async throws
        -> SessionRecord

    /// Makes the file and moves the session to `completed`, in one transaction. Asked again, it
    /// answers the same file.
    ///
    /// The new bytes are the blob of every file that has this digest from now on, and are due to be read.
    ///
    /// - Parameters:
    ///   - location: Where the byte store put the blob; nil when it is named by its digest. With a location,
    ///     what else is left of the staging area becomes garbage, and the blob that was elsewhere before is
    ///     kept as a ``SupersededBlob``.
    ///   - keepUntil: Until when readers may still read that one.
    func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord

    /// Moves a finalizing session back to `open`: its bytes turned out not to be there.
    func reopen(_ id: SessionID) async throws

    /// Promises to finalize a session, and takes the work; asked again by the same holder, it renews. The
    /// session does not expire before the lease. Completing, reopening and canceling end it.
    ///
    /// - Parameter expected: What the client expects the file to be; nil keeps what was said before.
    /// - Returns: False while another node has the work.
    /// - Throws: `notFound`, `wrongState` unless the session is open or finalizing.
    func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool
    /// Keeps the work for longer; does nothing when the promise is gone or another node has it.
    func renewFinalize(of id: SessionID, lease: WorkLease) async throws
    /// Takes the promise back: the finalize has failed, or cannot be. Does nothing while another node has the
    /// work.
    func dropFinalize(of id: SessionID, by lease: WorkLease) async throws
    /// Takes promised finalizes whose holder is gone, as ``takeFinalize(of:expecting:lease:)`` does. Nodes that ask at once get different ones.
    func takeAbandonedFinalizes(lease: WorkLease, limit: Int) async throws -> [FinalizeJob]
    /// Records how far the whole-file hash has come, if that is farther than what is recorded.
    ///
    /// - Parameter revision: As ``SessionTouch/revision``.
    func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws

    /// Moves a session that is not completed to `canceled`, forgets its chunks and turns its bytes
    /// into garbage. Asked again, it does nothing.
    func cancelSession(_ id: SessionID, owner: OwnerID) async throws

    /// The file, deleted or not; nil when this owner never had one of that id.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord?
    /// Up to `limit` files that are not deleted, newest first.
    func files(of owner: OwnerID, after: FileCursor?, limit: Int) async throws -> [FileRecord]
    /// The digests of a file's chunks in order.
    func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest]
    /// Deletes a file; its blob becomes garbage with the last file that has it. Asked again, it
    /// does nothing.
    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws

    /// Where the blob is that the area became, while a file needs it or it is kept as a superseded copy; nil
    /// otherwise, and for blobs that are named by their digest.
    func blobLocation(fromStaging key: StagingKey) async throws -> String?
    /// Leaves to the sweep what came into a staging area after its session had ended. Does nothing while a
    /// session has it.
    func leaveToSweep(_ key: StagingKey) async throws

    /// True while a session or the garbage names these bytes.
    func isKnown(_ key: StagingKey) async throws -> Bool

    /// Sessions that are open or finalizing, for a recovery at start.
    func unfinishedSessions() async throws -> [UnfinishedSession]
    /// Sessions that are finalizing: those at work now, and those that an error left behind.
    func finalizingSessions() async throws -> [SessionRecord]
    /// Open sessions that are made of others, in the order of their ids, those with greater ids than `after`.
    func openCompositions(after: SessionID?, limit: Int) async throws -> [SessionRecord]
    /// Marks open sessions whose time is over as `expired`, apart from those whose finalize is promised.
    /// Forgets expired and canceled sessions, and completed ones whose file is gone, that expired before
    /// `graceEnd`, turning their bytes into garbage.
    ///
    /// - Returns: The sessions that were forgotten or expired now.
    func expireSessions(now: Timestamp, graceEnd: Timestamp, limit: Int) async throws
        -> [SessionID]
    /// Takes garbage to remove, for this node alone until the lease ends. Blobs that a file or a
    /// finalizing session needs again are dropped from the garbage instead.
    func claimGarbage(now: Timestamp, leaseUntil: Timestamp, limit: Int) async throws -> [Garbage]
    /// Forgets garbage whose bytes are gone. Garbage that was added again, or claimed by somebody else, since
    /// the claim that ends then stays.
    func forgetGarbage(_ garbage: Garbage, claimedUntil end: Timestamp) async throws
    /// True while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) async throws -> Bool

    /// Says whose bytes the rows are about. The first to say so decides: two nodes that share rows must share
    /// bytes, too.
    ///
    /// - Throws: ``MetadataError/foreignBytes(_:)`` when the rows are about another place.
    func bind(toBytesAt identity: String) async throws

    /// Succeeds when the store answers and can write.
    func checkHealth() async throws
    /// Ends all work and closes the store. Nothing may be called afterwards.
    func close() async throws
}

extension MetadataStore {
    /// Creates a session whatever the number of those that are open.
    package func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?
    ) async throws -> CreateOutcome {
        try await createSession(
            record, idempotencyKey: idempotencyKey, adopting: adopting, in: nil)
    }

    /// Forgets the partial of a chunk, and not its rival.
    package func discardPartial(
        of id: SessionID, index: Int, by writer: WriterToken?
    ) async throws {
        try await discardPartial(of: id, index: index, isRival: false, by: writer)
    }
}
