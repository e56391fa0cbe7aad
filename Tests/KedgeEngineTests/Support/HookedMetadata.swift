import KedgeEngine
import KedgeModel
import KedgeTesting

/// A metadata store that calls a hook of the test for some operations. The hook may wait or throw.
struct HookedMetadata: MetadataStore {
    enum Call: Sendable {
        case progress
        case commit
        case savePartial
        /// After the row is durable.
        case savedPartial
        case cancel
        case beginFinalize
        case completeFinalize
        case invalidateDamagedChunks
        /// After the claim, before anything is removed.
        case claimedGarbage
        case checkHealth
    }

    typealias Hook = @Sendable (Call) async throws -> Void

    let real: any MetadataStore
    private let hook = Shared<Hook?>(nil)

    init(_ real: any MetadataStore) { self.real = real }

    func before(_ hook: Hook?) { self.hook.update { $0 = hook } }

    private func enter(_ call: Call) async throws { try await hook.value?(call) }

    func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws -> CreateOutcome {
        try await real.createSession(
            record, idempotencyKey: idempotencyKey, adopting: adopting, in: room)
    }

    func unfinishedSessions(
        of owner: OwnerID, after: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try await real.unfinishedSessions(of: owner, after: after, limit: limit)
    }

    func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress? {
        try await enter(.progress)
        return try await real.progress(of: id, owner: owner)
    }

    func commit(
        _ chunks: [CommittedChunk], touching session: SessionUpdate
    ) async throws -> [ChunkOutcome] {
        try await enter(.commit)
        return try await real.commit(chunks, touching: session)
    }

    func savePartial(_ partial: PartialRecord, touching session: SessionUpdate) async throws {
        try await enter(.savePartial)
        try await real.savePartial(partial, touching: session)
        try await enter(.savedPartial)
    }

    func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws {
        try await real.discardPartial(of: id, index: index, isRival: isRival, by: writer)
    }

    func invalidateChunks(touching session: SessionUpdate) async throws {
        try await real.invalidateChunks(touching: session)
    }

    func declareSize(
        _ byteCount: Int64, of id: SessionID, within quota: QuotaLimits
    ) async throws {
        try await real.declareSize(byteCount, of: id, within: quota)
    }

    func quota(of owner: OwnerID, within quota: QuotaLimits) async throws -> OwnerQuota {
        try await real.quota(of: owner, within: quota)
    }

    func invalidateChunks(_ indexes: [Int], of id: SessionID) async throws {
        try await real.invalidateChunks(indexes, of: id)
    }

    func invalidateDamagedChunks(
        _ indexes: [Int], of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await enter(.invalidateDamagedChunks)
        try await real.invalidateDamagedChunks(indexes, of: id, knowing: revision)
    }

    func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID, within quota: QuotaLimits
    ) async throws -> SessionRecord {
        try await enter(.beginFinalize)
        return try await real.beginFinalize(
            of: id, digest: digest, fileID: fileID, within: quota)
    }

    func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord {
        try await enter(.completeFinalize)
        return try await real.completeFinalize(
            of: id, at: now, location: location, keepUntil: keepUntil)
    }

    func completeFinalize(
        of id: SessionID, from stored: StoredFileShape, digest: SHA256Digest, fileID: FileID,
        at now: Timestamp
    ) async throws -> FileRecord? {
        try await enter(.completeFinalize)
        return try await real.completeFinalize(
            of: id, from: stored, digest: digest, fileID: fileID, at: now)
    }

    func storedFiles(
        like shape: StoredFileShape, _ match: StoredFileMatch, limit: Int
    ) async throws -> [StoredFile] {
        try await real.storedFiles(like: shape, match, limit: limit)
    }

    func renewFinalize(of id: SessionID, lease: WorkLease) async throws {
        try await real.renewFinalize(of: id, lease: lease)
    }

    func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await real.supersede(blob, at: now)
    }

    func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await real.isReleasable(blob, at: now)
    }

    func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob] {
        try await real.supersededBlobs(of: digest)
    }

    func releasableBlobs(at now: Timestamp, limit: Int) async throws -> [SupersededBlob] {
        try await real.releasableBlobs(at: now, limit: limit)
    }

    func forgetSuperseded(_ blob: SupersededBlob) async throws {
        try await real.forgetSuperseded(blob)
    }

    func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool {
        try await real.restoreSuperseded(
            blob, of: target, lease: lease, nextAt: nextAt, keepUntil: keepUntil)
    }

    func keepSuperseded(at locations: [String], until time: Timestamp) async throws {
        try await real.keepSuperseded(at: locations, until: time)
    }

    func claimScrub(lease: WorkLease) async throws -> ScrubTarget? {
        try await real.claimScrub(lease: lease)
    }

    func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool {
        try await real.renewScrub(target, lease: lease, checkedByteCount: checkedByteCount)
    }

    func finishScrub(
        _ target: ScrubTarget, _ result: ScrubResult, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool {
        try await real.finishScrub(target, result, lease: lease, nextAt: nextAt)
    }

    func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool {
        try await real.markDamaged(file, at: now)
    }

    func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest? {
        try await real.addMissingScrubs(after: digest, at: now)
    }

    func scrubBacklog() async throws -> ScrubBacklog { try await real.scrubBacklog() }

    func liveFiles(with digest: SHA256Digest, limit: Int) async throws -> [FileRecord] {
        try await real.liveFiles(with: digest, limit: limit)
    }

    func files(
        of owner: OwnerID, under prefix: PathPrefix, after: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await real.files(of: owner, under: prefix, after: after, limit: limit)
    }

    func damagedFiles(
        of owner: OwnerID, after: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await real.damagedFiles(of: owner, after: after, limit: limit)
    }

    func addToGarbage(_ key: StagingKey) async throws { try await real.addToGarbage(key) }

    func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool {
        try await real.takeFinalize(of: id, expecting: expected, lease: lease)
    }

    func discardFinalize(of id: SessionID, by lease: WorkLease) async throws {
        try await real.discardFinalize(of: id, by: lease)
    }

    func takeAbandonedFinalizes(
        lease: WorkLease, limit: Int
    ) async throws -> [FinalizeJob] {
        try await real.takeAbandonedFinalizes(lease: lease, limit: limit)
    }

    func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await real.savePrefix(prefix, of: id, knowing: revision)
    }

    func blobLocation(fromStaging key: StagingKey) async throws -> String? {
        try await real.blobLocation(fromStaging: key)
    }

    func stagingState(of key: StagingKey) async throws -> String? {
        try await real.stagingState(of: key)
    }

    func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        try await real.setStagingState(state, of: key, replacing: expected)
    }

    func bind(toBytesAt identity: String) async throws {
        try await real.bind(toBytesAt: identity)
    }

    func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try await enter(.cancel)
        try await real.cancelSession(id, owner: owner)
    }

    func reopen(_ id: SessionID) async throws { try await real.reopen(id) }

    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord? {
        try await real.file(id, owner: owner)
    }

    func files(of owner: OwnerID, after: FileCursor?, limit: Int) async throws -> [FileRecord] {
        try await real.files(of: owner, after: after, limit: limit)
    }

    func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest] {
        try await real.chunkDigests(of: file)
    }

    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws {
        try await real.deleteFile(id, owner: owner, at: now)
    }

    func isKnown(_ key: StagingKey) async throws -> Bool { try await real.isKnown(key) }

    func unfinishedSessions() async throws -> [UnfinishedSession] {
        try await real.unfinishedSessions()
    }

    func openConcatenations(after: SessionID?, limit: Int) async throws -> [SessionRecord] {
        try await real.openConcatenations(after: after, limit: limit)
    }

    func finalizingSessions() async throws -> [SessionRecord] {
        try await real.finalizingSessions()
    }

    func expireSessions(
        now: Timestamp, graceEnd: Timestamp, limit: Int
    ) async throws -> [SessionID] {
        try await real.expireSessions(now: now, graceEnd: graceEnd, limit: limit)
    }

    func claimGarbage(
        now: Timestamp, leaseUntil: Timestamp, limit: Int
    ) async throws -> [Garbage] {
        let garbage = try await real.claimGarbage(now: now, leaseUntil: leaseUntil, limit: limit)
        try await enter(.claimedGarbage)
        return garbage
    }

    func forgetGarbage(
        _ garbage: Garbage, claimedUntil end: Timestamp
    ) async throws {
        try await real.forgetGarbage(garbage, claimedUntil: end)
    }
    func isNeeded(_ digest: SHA256Digest) async throws -> Bool { try await real.isNeeded(digest) }
    func rowCounts() async throws -> RowCounts { try await real.rowCounts() }

    func checkHealth() async throws {
        try await enter(.checkHealth)
        try await real.checkHealth()
    }
    func close() async throws { try await real.close() }
}
