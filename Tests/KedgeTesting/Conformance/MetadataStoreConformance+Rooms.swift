internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    private static let (first, second) = ("192.0.2.1", "2001:db8::/64")

    /// Creates a session of a client, with room for `limit` open sessions, and returns the store's
    /// answer.
    private static func create(
        _ record: SessionRecord = Sample.session(), in store: any MetadataStore, most limit: Int,
        of client: String? = first, besides busy: Set<SessionID> = [],
        key: IdempotencyKey? = nil, adopting: SessionID? = nil
    ) async throws -> MetadataAnswer {
        let room = SessionRoom(maxOpenCount: limit, client: client, busy: busy)
        return MetadataAnswer(
            try await store.createSession(
                record, idempotencyKey: key, adopting: adopting, in: room))
    }

    /// Creates a session, and requires that there is room.
    private static func fill(
        _ store: any MetadataStore, of client: String? = first,
        _ record: SessionRecord = Sample.session()
    ) async throws -> SessionRecord {
        #expect(try await create(record, in: store, most: 100, of: client) == .created(record))
        return record
    }

    static let rooms = [
        Case("the oldest empty session of the client with most of them makes room") { store in
            let lonely = try await fill(store, of: second)
            let oldest = try await fill(store)
            let younger = try await fill(store)
            let record = Sample.session()
            let answer = try await create(record, in: store, most: 3, of: second)
            #expect(answer == .createdInstead(record, of: oldest.id))
            #expect(try await store.now(oldest) == nil)
            #expect(try await store.isKnown(oldest.stagingKey), "its bytes are left to the sweep")
            for kept in [lonely, younger, record] { #expect(try await store.now(kept) != nil) }
        },
        Case("neither sessions with bytes nor final uploads make room") { store in
            let (whole, begun) = (try await fill(store), try await fill(store))
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(whole))
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(begun))
            var concatenation = Sample.session(fileSize: nil)
            concatenation.sourceIDs = [whole.id, begun.id]
            _ = try await fill(store, concatenation)
            let record = Sample.session()
            #expect(try await create(record, in: store, most: 3) == .full)
            #expect(try await store.now(record) == nil)
            #expect(try await store.unfinishedSessions().count == 3)
        },
        Case("a session whose bytes are on their way makes no room") { store in
            let (busy, idle) = (try await fill(store), try await fill(store))
            let record = Sample.session()
            let answer = try await create(record, in: store, most: 2, besides: [busy.id])
            #expect(answer == .createdInstead(record, of: idle.id))
            let all: Set = [busy.id, record.id]
            #expect(try await create(in: store, most: 2, besides: all) == .full)
        },
        Case("a session that lost its bytes again makes no room") { store in
            let record = try await fill(store)
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            try await store.invalidateChunks([0], of: record.id)
            #expect(try await create(in: store, most: 1) == .full)
        },
        Case("sessions that have ended take no room") { store in
            let canceled = try await fill(store)
            try await store.cancelSession(canceled.id, owner: canceled.owner)
            _ = try await store.makeFile()
            let record = Sample.session()
            #expect(try await create(record, in: store, most: 1) == .created(record))
        },
        Case("a promised finalize keeps its session") { store in
            let promised = try await fill(store, of: first, Sample.session(fileSize: 0))
            let lease = WorkLease(
                holder: "node", now: Sample.time(1), until: Sample.time(100))
            #expect(try await store.takeFinalize(of: promised.id, expecting: nil, lease: lease))
            #expect(try await create(in: store, most: 1) == .full)
        },
        Case("a repeated create needs no room") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let record = Sample.session()
            #expect(try await create(record, in: store, most: 1, key: key) == .created(record))
            _ = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(record))
            guard case .replayed(let again) = try await create(in: store, most: 1, key: key) else {
                Issue.record("expected a replay")
                return
            }
            #expect(again.id == record.id)
        },
        Case("a session that makes room frees its idempotency key") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let (record, next, third) = (Sample.session(), Sample.session(), Sample.session())
            let first = try await create(record, in: store, most: 1, key: key)
            #expect(first == .created(record))
            let second = try await create(next, in: store, most: 1)
            #expect(second == .createdInstead(next, of: record.id))
            let again = try await create(third, in: store, most: 1, key: key)
            #expect(again == .createdInstead(third, of: next.id))
        },
        Case("adopting an open session needs no room, and what it brings counts") { store in
            let old = try await fill(store)
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(old, until: 10))
            let new = Sample.session(createdAt: Sample.time(20))
            let answer = try await create(new, in: store, most: 1, adopting: old.id)
            guard case .created = answer else {
                Issue.record("expected a new session, not \(answer)")
                return
            }
            #expect(try await store.now(new)?.chunks.count == 1)
            #expect(try await create(in: store, most: 1) == .full)
        },
        Case("a session is a partial upload of a bounded number of final uploads") { store in
            let parts = [try await fill(store), try await fill(store), try await fill(store)]
            let lists = [[0, 1], [1, 0], [2, 0, 1], [0], [2], [1, 2]]
            var outcomes: [Bool] = []
            for list in lists {
                var whole = Sample.session(fileSize: nil)
                whole.sourceIDs = list.map { parts[$0].id }
                let room = SessionRoom(maxOpenCount: 100, maxConcatenationCount: 2)
                let outcome = try await store.createSession(
                    whole, idempotencyKey: nil, adopting: nil, in: room)
                outcomes.append(MetadataAnswer(outcome) == .created(whole))
                #expect(try await (store.now(whole) != nil) == outcomes.last)
            }
            #expect(outcomes == [true, true, false, false, true, false])
        },
        Case("concurrent creates keep the bound together") { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<24 {
                    group.addTask { _ = try await create(in: store, most: 5) }
                }
                try await group.waitForAll()
            }
            #expect(try await store.unfinishedSessions().count == 5)
        },
    ]
}
