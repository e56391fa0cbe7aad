package import KedgeEngine
package import KedgeModel

/// One call of the port as a value, so that a test can make it on several stores and print it.
package enum MetadataOperation: Sendable {
    case create(
        SessionRecord, key: IdempotencyKey?, adopting: SessionID?, in: SessionRoom?)
    case commit([CommittedChunk], SessionUpdate)
    case savePartial(PartialRecord, SessionUpdate)
    case discardPartial(SessionID, index: Int, isRival: Bool)
    case declareSize(Int64, SessionID, within: QuotaLimits)
    case invalidateChunks([Int], SessionID)
    case invalidateDamagedChunks([Int], SessionID)
    case beginFinalize(SessionID, SHA256Digest, FileID, within: QuotaLimits = .none)
    case completeFinalize(SessionID, at: Timestamp, location: String?)
    case reopen(SessionID)
    case takeFinalize(SessionID, expecting: SHA256Digest?, WorkLease)
    case renewFinalize(SessionID, WorkLease)
    case discardFinalize(SessionID, WorkLease)
    case takeAbandonedFinalizes(WorkLease)
    case savePrefix(HashCheckpoint, SessionID)
    case cancel(SessionID, OwnerID)
    case deleteFile(FileID, OwnerID, at: Timestamp)
    case setStagingState(String?, StagingKey, replacing: String?)
    case expire(now: Timestamp, graceEnd: Timestamp)
    case claimGarbage(now: Timestamp, until: Timestamp)
    case forgetGarbage(Garbage, claimedUntil: Timestamp)
    case addToGarbage(StagingKey)
    case bind(String)

    /// More rows than any test has. A smaller limit would leave the choice of rows to each store.
    private static let limit = 100_000

    /// Makes the call.
    package func run(on store: any MetadataStore) async -> MetadataAnswer {
        do {
            return try await answer(of: store)
        } catch {
            return MetadataAnswer(error)
        }
    }

    private func answer(of store: any MetadataStore) async throws -> MetadataAnswer {
        switch self {
        case .create(let record, let key, let adopting, let room):
            return MetadataAnswer(
                try await store.createSession(
                    record, idempotencyKey: key, adopting: adopting, in: room))
        case .commit(let chunks, let touch):
            return .outcomes(try await store.commit(chunks, touching: touch))
        case .beginFinalize(let id, let digest, let fileID, let quota):
            return .session(
                try await store.beginFinalize(
                    of: id, digest: digest, fileID: fileID, within: quota))
        case .completeFinalize(let id, let now, let location):
            return .file(
                try await store.completeFinalize(
                    of: id, at: now, location: location,
                    keepUntil: now.advanced(by: .seconds(60))))
        case .takeFinalize(let id, let expected, let lease):
            return .flag(
                try await store.takeFinalize(of: id, expecting: expected, lease: lease))
        case .takeAbandonedFinalizes(let lease):
            return .jobs(
                try await store.takeAbandonedFinalizes(lease: lease, limit: Self.limit))
        case .setStagingState(let state, let key, let expected):
            return .text(try await store.setStagingState(state, of: key, replacing: expected))
        case .expire(let now, let graceEnd):
            return .sessions(
                try await store.expireSessions(now: now, graceEnd: graceEnd, limit: Self.limit))
        case .claimGarbage(let now, let until):
            return .garbage(
                try await store.claimGarbage(now: now, leaseUntil: until, limit: Self.limit))
        default:
            try await runSilent(on: store)
            return .nothing
        }
    }

    /// Makes the calls that return nothing.
    private func runSilent(on store: any MetadataStore) async throws {
        switch self {
        case .savePartial(let partial, let touch):
            try await store.savePartial(partial, touching: touch)
        case .discardPartial(let id, let index, let isRival):
            try await store.discardPartial(of: id, index: index, isRival: isRival, by: nil)
        case .declareSize(let byteCount, let id, let quota):
            try await store.declareSize(byteCount, of: id, within: quota)
        case .invalidateChunks(let indexes, let id):
            try await store.invalidateChunks(indexes, of: id)
        case .invalidateDamagedChunks(let indexes, let id):
            try await store.invalidateDamagedChunks(indexes, of: id, knowing: nil)
        case .reopen(let id): try await store.reopen(id)
        case .renewFinalize(let id, let lease):
            try await store.renewFinalize(of: id, lease: lease)
        case .discardFinalize(let id, let lease):
            try await store.discardFinalize(of: id, by: lease)
        case .savePrefix(let prefix, let id):
            try await store.savePrefix(prefix, of: id, knowing: nil)
        case .cancel(let id, let owner): try await store.cancelSession(id, owner: owner)
        case .deleteFile(let id, let owner, let now):
            try await store.deleteFile(id, owner: owner, at: now)
        case .forgetGarbage(let garbage, let end):
            try await store.forgetGarbage(garbage, claimedUntil: end)
        case .addToGarbage(let key): try await store.addToGarbage(key)
        case .bind(let identity): try await store.bind(toBytesAt: identity)
        default: preconditionFailure("\(self) answers something")
        }
    }
}

/// The result of an operation, comparable between stores.
package enum MetadataAnswer: Hashable, Sendable {
    case nothing
    case created(SessionRecord)
    case createdInstead(SessionRecord, of: SessionID)
    case full
    case sourceUsedUp
    case linkUsed
    case quotaExceeded(QuotaRefusal)
    case replayed(SessionRecord)
    case keyConflict
    case outcomes([ChunkOutcome])
    case session(SessionRecord)
    case file(FileRecord)
    case flag(Bool)
    case text(String?)
    /// Sorted by id, because no store promises an order.
    case sessions([SessionID])
    case jobs([FinalizeJob])
    case garbage([Garbage])
    /// Without the text, which differs between stores.
    case refused(MetadataError)

    init(_ outcome: CreateOutcome) {
        switch outcome {
        case .created(let record): self = .created(record)
        case .replayed(let record): self = .replayed(record)
        case .createdInstead(let record, let ended): self = .createdInstead(record, of: ended)
        case .full: self = .full
        case .sourceUsedUp: self = .sourceUsedUp
        case .linkUsed: self = .linkUsed
        case .quotaExceeded(let refusal): self = .quotaExceeded(refusal)
        case .keyConflict: self = .keyConflict
        }
    }

    init(_ error: any Error) {
        switch error {
        case MetadataError.failed: self = .refused(.failed("…"))
        case MetadataError.unavailable: self = .refused(.unavailable("…"))
        case let error as MetadataError: self = .refused(error)
        default: preconditionFailure("a store throws only its port's error, not \(error)")
        }
    }

    /// Sorts lists without a promised order. Duplicates stay.
    var inOrder: MetadataAnswer {
        switch self {
        case .sessions(let ids): .sessions(ids.sorted { $0.text < $1.text })
        case .jobs(let jobs): .jobs(jobs.sorted { $0.record.id.text < $1.record.id.text })
        case .garbage(let garbage):
            .garbage(garbage.sorted { String(describing: $0) < String(describing: $1) })
        default: self
        }
    }
}
