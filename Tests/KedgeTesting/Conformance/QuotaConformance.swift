package import KedgeEngine
package import KedgeIdentity
internal import KedgeModel
internal import Testing

/// A metadata store that keeps owners within their limits.
package typealias QuotaStore = MetadataStore & OwnerStore & CheckedRows & QuotaRepair

extension ConformanceCase where Store == any QuotaStore {
    init(_ name: String, _ body: @escaping @Sendable (any QuotaStore) async throws -> Void) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            #expect(try await store.quotaDrifts(after: nil, limit: 10) == [])
            try await store.close()
        }
    }
}

/// Behaviours of every store that keeps owners within their limits.
package enum QuotaConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any QuotaStore>

    /// The promises of the ports, one by one.
    package static let all = counting + limits + growth + finalUploads + owners

    static let step = OwnerQuota.reservationStep

    static func create(
        _ record: SessionRecord, in store: any QuotaStore, within quota: QuotaLimits,
        key: IdempotencyKey? = nil, adopting: SessionID? = nil, most limit: Int = 1_000_000
    ) async throws -> MetadataAnswer {
        MetadataAnswer(
            try await store.createSession(
                record, idempotencyKey: key, adopting: adopting,
                in: SessionRoom(maxOpenCount: limit, quota: quota)))
    }

    /// The sums of the sample owner: stored bytes, reserved bytes and open sessions.
    static func sums(_ store: any QuotaStore, of owner: OwnerID = Sample.owner) async throws
        -> [Int64]
    {
        let quota = try await store.quota(of: owner, within: .none)
        return [quota.storedBytes, quota.reservedBytes, quota.openSessionCount]
    }

    /// Expects a refusal by a limit, and returns it.
    static func refused(
        _ location: SourceLocation = #_sourceLocation, _ operation: () async throws -> Void
    ) async -> QuotaRefusal? {
        do {
            try await operation()
            Issue.record("the store accepted it", sourceLocation: location)
        } catch MetadataError.quotaExceeded(let refusal) {
            return refusal
        } catch {
            Issue.record(error, sourceLocation: location)
        }
        return nil
    }
}

extension QuotaConformance {
    private static let counting = [
        Case("a session reserves its size, and its file stores it until it is deleted") { store in
            #expect(try await sums(store) == [0, 0, 0])
            let record = try await store.make()
            #expect(try await sums(store) == [0, 250, 1])
            try await store.fill(record)
            #expect(try await sums(store) == [0, 250, 1])
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            #expect(try await sums(store) == [0, 250, 1])
            let file = try await store.completeFinalize(of: record.id, at: Sample.time(1))
            for _ in 0..<2 {
                #expect(try await sums(store) == [250, 0, 0])
                _ = try await store.completeFinalize(of: record.id, at: Sample.time(1))
            }
            for _ in 0..<2 {
                try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(2))
                #expect(try await sums(store) == [0, 0, 0])
            }
        },
        Case("each file counts in full, also one with the bytes of another") { store in
            for _ in 0..<2 { _ = try await store.makeFile("equal") }
            #expect(try await sums(store) == [500, 0, 0])
            #expect(try await sums(store, of: Sample.stranger) == [0, 0, 0])
        },
        Case("a session that is canceled or expires gives its reservation back") { store in
            let (canceled, expired) = (
                try await store.make(), try await store.make(Sample.session(fileSize: 100))
            )
            #expect(try await sums(store) == [0, 350, 2])
            for _ in 0..<2 {
                try await store.cancelSession(canceled.id, owner: canceled.owner)
                #expect(try await sums(store) == [0, 100, 1])
            }
            for seconds in [1000, 9000] as [Int64] {
                _ = try await store.expireSessions(
                    now: Sample.time(seconds), graceEnd: Sample.time(seconds - 100), limit: 10)
                #expect(try await sums(store) == [0, 0, 0])
            }
            #expect(try await store.now(expired) == nil)
        },
        Case("a session that makes room for one of another owner gives its place back") { store in
            let victim = Sample.session(owner: Sample.stranger)
            let answer = try await create(victim, in: store, within: .none)
            #expect(answer == .created(victim))
            let record = Sample.session()
            #expect(
                try await create(record, in: store, within: .none, most: 1)
                    == .createdInstead(record, of: victim.id))
            #expect(try await sums(store, of: Sample.stranger) == [0, 0, 0])
            #expect(try await sums(store) == [0, 250, 1])
        },
        Case("the expiry of many owners' sessions keeps the sums of each") { store in
            for number in 0..<12 {
                let owner = OwnerID("owner \(number % 4)")
                _ = try await store.make(
                    Sample.session(owner: owner, expiresAt: Sample.time(Int64(number))))
            }
            _ = try await store.expireSessions(
                now: Sample.time(5), graceEnd: Sample.time(-100), limit: 100)
            for number in 0..<4 {
                let left: Int64 = number < 2 ? 1 : 2
                #expect(
                    try await sums(store, of: OwnerID("owner \(number)")) == [0, left * 250, left])
            }
        },
    ]

    private static let limits = [
        Case("two hundred concurrent creates get exactly the fifty places") { store in
            for quota in [QuotaLimits(openSessions: 50), QuotaLimits(storedBytes: 50 * 250 + 249)] {
                let owner = OwnerID("owner of \(quota.openSessions)")
                let created = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<200 {
                        group.addTask {
                            let record = Sample.session(owner: owner)
                            let answer = try await create(record, in: store, within: quota)
                            return answer == .created(record)
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(created == 50)
                #expect(try await sums(store, of: owner) == [0, 50 * 250, 50])
            }
        },
        Case("a refused create names the limit and writes nothing") { store in
            let file = try await store.makeFile()
            let open = try await store.make(Sample.session(fileSize: 100))
            try await store.fill(open)
            let empty = try await store.make(Sample.session(owner: Sample.stranger))
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let quota = QuotaLimits(storedBytes: 599)
            let record = Sample.session()
            let answer = try await create(record, in: store, within: quota, key: key, most: 2)
            #expect(
                answer
                    == .quotaExceeded(
                        QuotaRefusal(
                            .storedBytes, limit: 599, storedBytes: 250, reservedBytes: 100)))
            #expect(try await store.now(record) == nil)
            #expect(try await store.now(empty) != nil, "it did not make room")
            #expect(try await sums(store) == [250, 100, 1])
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            let again = try await create(record, in: store, within: quota, key: key)
            #expect(again == .created(record))
        },
        Case("the number of unfinished sessions and the size of a file have limits") { store in
            let quota = QuotaLimits(openSessions: 1, fileBytes: 249)
            let large = try await create(Sample.session(), in: store, within: quota)
            #expect(
                large
                    == .quotaExceeded(
                        QuotaRefusal(.fileBytes, limit: 249, storedBytes: 0, reservedBytes: 0)))
            let small = Sample.session(fileSize: 249)
            #expect(try await create(small, in: store, within: quota) == .created(small))
            let second = try await create(Sample.session(fileSize: 0), in: store, within: quota)
            guard case .quotaExceeded(let refusal) = second else {
                Issue.record("expected a refusal, not \(second)")
                return
            }
            #expect(refusal.kind == .openSessions && refusal.limit == 1)
        },
        Case("a repeated create is not refused") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let quota = QuotaLimits(storedBytes: 250, openSessions: 1)
            let outcomes = try await withThrowingTaskGroup(of: MetadataAnswer.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await create(Sample.session(), in: store, within: quota, key: key)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let replays = outcomes.count { if case .replayed = $0 { true } else { false } }
            #expect(replays == 19, "\(outcomes)")
            #expect(try await sums(store) == [0, 250, 1])
        },
        Case("a session that takes over an open one needs no place and no room") { store in
            let old = try await store.make(Sample.session(expiresAt: Sample.time(10)))
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(old, until: 10))
            let quota = QuotaLimits(storedBytes: 1, openSessions: 1)
            let new = Sample.session(createdAt: Sample.time(20))
            let answer = try await create(new, in: store, within: quota, adopting: old.id)
            guard case .created(let record) = answer else {
                Issue.record("expected a new session, not \(answer)")
                return
            }
            #expect(try await sums(store) == [0, 250, 1])
            _ = try await store.expireSessions(
                now: Sample.time(2000), graceEnd: Sample.time(-100), limit: 10)
            #expect(try await sums(store) == [0, 0, 0])
            let third = Sample.session(createdAt: Sample.time(2001))
            let refused = try await create(third, in: store, within: quota, adopting: record.id)
            guard case .quotaExceeded = refused else {
                Issue.record("an expired session has no place to hand over: \(refused)")
                return
            }
        },
    ]

    private static let growth = [
        Case("a session of unknown size reserves as its bytes arrive") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            #expect(try await sums(store) == [0, 0, 1])
            try await store.savePartial(Sample.rival(0), touching: Sample.touch(record))
            #expect(try await sums(store) == [0, 0, 1], "a rival is no part of the file")
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(record))
            #expect(try await sums(store) == [0, step, 1])
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            #expect(try await sums(store) == [0, step, 1])
            try await store.declareSize(130, of: record.id)
            #expect(try await sums(store) == [0, 130, 1])
        },
        Case("bytes beyond the quota are refused, and acknowledged ones stay") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            var touch = Sample.touch(record)
            touch.quota = QuotaLimits(storedBytes: 250)
            let whole = [0, 1].map { index in
                CommittedChunk(
                    index: index, byteCount: 100, digest: Sample.digest("chunk \(index)"))
            }
            _ = try await store.commit(whole, touching: touch)
            #expect(try await sums(store) == [0, 250, 1], "it reserves what is left")
            try await store.savePartial(Sample.partial(2, byteCount: 50), touching: touch)
            let refusal = await refused {
                try await store.savePartial(Sample.partial(2, byteCount: 51), touching: touch)
            }
            #expect(
                refusal
                    == QuotaRefusal(.storedBytes, limit: 250, storedBytes: 0, reservedBytes: 250))
            let next = CommittedChunk(index: 2, byteCount: 100, digest: Sample.digest("next"))
            let other = await refused { _ = try await store.commit([next], touching: touch) }
            #expect(other?.kind == .storedBytes)
            let progress = try await store.now(record)
            #expect(progress?.chunks == whole)
            #expect(progress?.partials.map(\.byteCount) == [50])
            #expect(try await sums(store) == [0, 250, 1])
        },
        Case("a session of unknown size stops at the largest file") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            var touch = Sample.touch(record)
            touch.quota = QuotaLimits(fileBytes: 150)
            _ = try await store.commit([Sample.chunk(0)], touching: touch)
            #expect(try await sums(store) == [0, 150, 1])
            let next = CommittedChunk(index: 1, byteCount: 100, digest: Sample.digest("next"))
            let refusal = await refused { _ = try await store.commit([next], touching: touch) }
            #expect(refusal?.kind == .fileBytes && refusal?.limit == 150)
            let larger = await refused {
                try await store.declareSize(151, of: record.id, within: touch.quota)
            }
            #expect(larger?.kind == .fileBytes)
            #expect(try await store.now(record)?.record.fileSize == nil)
            try await store.declareSize(150, of: record.id, within: touch.quota)
            #expect(try await sums(store) == [0, 150, 1])
        },
        Case("a declared size needs room only for what was not reserved") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            _ = try await store.make(Sample.session(fileSize: 100))
            let quota = QuotaLimits(storedBytes: 300)
            let refusal = await refused {
                try await store.declareSize(201, of: record.id, within: quota)
            }
            #expect(
                refusal
                    == QuotaRefusal(.storedBytes, limit: 300, storedBytes: 0, reservedBytes: 100))
            #expect(try await sums(store) == [0, 100, 2])
            try await store.declareSize(200, of: record.id, within: quota)
            #expect(try await sums(store) == [0, 300, 2])
        },
        Case("concurrent uploads of unknown size share what is left") { store in
            let quota = QuotaLimits(storedBytes: 7 * 100 + 50)
            let stored = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 {
                    let record = try await store.make(Sample.session(fileSize: nil))
                    group.addTask {
                        // Each gives back at once what it does not need.
                        for _ in 0..<60 {
                            var touch = Sample.touch(record)
                            touch.quota = quota
                            do {
                                _ = try await store.commit([Sample.chunk(0)], touching: touch)
                                try await store.declareSize(100, of: record.id, within: quota)
                                return true
                            } catch MetadataError.quotaExceeded {
                                await Task.yield()
                            }
                        }
                        return false
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(stored == 7)
            #expect(try await sums(store) == [0, 700, 20])
        },
    ]
}
