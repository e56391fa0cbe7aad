internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    /// A use of a link that ends at second 100,000.
    private static func use(
        _ linkID: String = String(repeating: "a", count: 32), of maxUses: Int = 1,
        _ fingerprint: String = "request"
    ) -> LinkUse {
        LinkUse(
            linkID: linkID, maxUses: maxUses, fingerprint: fingerprint,
            expiresAt: Sample.time(100_000))
    }

    private static func session(
        by use: LinkUse = use(), at seconds: Int64 = 0, fileSize: Int64? = Sample.fileSize
    ) -> SessionRecord {
        var record = Sample.session(
            fileSize: fileSize, createdAt: Sample.time(seconds),
            expiresAt: Sample.time(seconds + 1000))
        record.linkID = use.linkID
        return record
    }

    /// A session with limits and an origin.
    private static func limited(fileSize: Int64? = Sample.fileSize) -> SessionRecord {
        var record = session(fileSize: fileSize)
        record.maxByteCount = fileSize ?? 100
        record.minByteCount = 10
        record.createdBy = "token:abcdefghijkl"
        return record
    }

    private static func create(
        _ record: SessionRecord = session(), by use: LinkUse? = use(), in store: any MetadataStore,
        most limit: Int = 1000
    ) async throws -> MetadataAnswer {
        MetadataAnswer(
            try await store.createSession(
                record, idempotencyKey: nil, adopting: nil,
                in: SessionRoom(maxOpenCount: limit, link: use)))
    }

    /// Answers of creates at the same time.
    private static func answers(
        of count: Int, in store: any MetadataStore, by use: @escaping @Sendable (Int) -> LinkUse
    ) async throws -> [MetadataAnswer] {
        try await withThrowingTaskGroup(of: MetadataAnswer.self) { group in
            for number in 0..<count {
                group.addTask { try await create(by: use(number), in: store) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Makes a file out of a session at a second.
    private static func complete(
        _ record: SessionRecord, in store: any MetadataStore, at seconds: Int64
    ) async throws -> FileRecord {
        try await store.fill(record)
        _ = try await store.beginFinalize(
            of: record.id, digest: Sample.digest("content"), fileID: .random())
        return try await store.completeFinalize(of: record.id, at: Sample.time(seconds))
    }

    static let linkUses = [
        Case("the limits and the origin of a session read back as they were") { store in
            let record = limited()
            let made = try await store.make(record)
            #expect(made == record)
            #expect(try await store.now(record)?.record == record)
        },
        Case("no size beyond the limits of a session is stored") { store in
            let record = limited(fileSize: nil)
            _ = try await store.make(record)
            for size: Int64 in [9, 101] {
                await expectRefusal { try await store.declareSize(size, of: record.id) }
            }
            try await store.declareSize(100, of: record.id)
            #expect(try await store.now(record)?.record.fileSize == 100)
        },
        Case("a one-use link creates one session, and a repetition answers it") { store in
            let record = session()
            let answer = try await create(record, in: store)
            #expect(answer == .created(record))
            #expect(try await create(in: store) == .replayed(record))
            #expect(try await create(by: use(of: 1, "another"), in: store) == .linkUsed)
            #expect(try await store.unfinishedSessions().count == 1)
            let other = use(String(repeating: "b", count: 32))
            let second = session(by: other)
            #expect(try await create(second, by: other, in: store) == .created(second))
        },
        Case("fifty creates by a one-use link at the same time make one session") { store in
            let results = try await answers(of: 50, in: store) { _ in use() }
            #expect(Set(results.compactMap(\.session)).count == 1)
            #expect(results.count { $0.isCreated } == 1)
            #expect(results.count == 50)
            #expect(try await store.unfinishedSessions().count == 1)
        },
        Case("of different requests by a one-use link at the same time one succeeds") { store in
            let results = try await answers(of: 20, in: store) { use(of: 1, "\($0)") }
            #expect(results.count { $0 == .linkUsed } == 19)
            #expect(try await store.unfinishedSessions().count == 1)
        },
        Case("a link for three sessions creates three, also of one name and size") { store in
            let link = use(of: 3)
            var made: [SessionRecord] = []
            for _ in 0..<3 {
                let record = session()
                #expect(try await create(record, by: link, in: store) == .created(record))
                made.append(record)
            }
            #expect(try await create(by: link, in: store) == .linkUsed)
            try await store.cancelSession(made[1].id, owner: Sample.owner)
            let fourth = session()
            #expect(try await create(fourth, by: link, in: store) == .created(fourth))
            #expect(try await create(by: link, in: store) == .linkUsed)
        },
        Case("a canceled session returns its use of the link") { store in
            let (record, next) = (session(), session())
            _ = try await create(record, in: store)
            try await store.cancelSession(record.id, owner: Sample.owner)
            #expect(try await create(next, in: store) == .created(next))
            #expect(try await create(in: store) == .replayed(next))
        },
        Case("an expired session returns its use of the link, before and after it is forgotten") {
            store in
            let (record, next, last) = (session(), session(at: 1500), session(at: 9000))
            _ = try await create(record, in: store)
            // Another request could still continue it until the sweep.
            #expect(try await create(by: use(of: 1, "another"), in: store) == .linkUsed)
            let swept = try await store.expireSessions(
                now: Sample.time(1001), graceEnd: Sample.time(0), limit: 10)
            #expect(swept == [record.id])
            #expect(try await create(next, in: store) == .created(next))
            for now: Int64 in [3000, 3001] {
                _ = try await store.expireSessions(
                    now: Sample.time(now), graceEnd: Sample.time(now), limit: 10)
            }
            #expect(try await store.now(next) == nil)
            #expect(try await create(last, in: store) == .created(last))
        },
        Case("a session that makes room returns its use of the link") { store in
            let (record, other, next) = (session(), Sample.session(), session())
            #expect(try await create(record, in: store) == .created(record))
            let answer = try await create(other, by: nil, in: store, most: 1)
            #expect(answer == .createdInstead(other, of: record.id))
            #expect(try await create(next, in: store) == .created(next))
        },
        Case("a repetition answers a completed session for an hour") { store in
            let record = session()
            _ = try await create(record, in: store)
            _ = try await complete(record, in: store, at: 100)
            guard case .replayed(let found) = try await create(session(at: 3699), in: store)
            else {
                Issue.record("expected a replay")
                return
            }
            #expect(found.id == record.id)
            #expect(found.state == .completed)
            #expect(try await create(session(at: 3700), in: store) == .linkUsed)
            let another = use(of: 1, "another")
            #expect(try await create(session(at: 200), by: another, in: store) == .linkUsed)
        },
        Case("a used link stays used after its file and session are gone, until it ends") {
            store in
            let record = session()
            _ = try await create(record, in: store)
            let file = try await complete(record, in: store, at: 100)
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(200))
            let sweep: @Sendable (Int64) async throws -> Void = { now in
                _ = try await store.expireSessions(
                    now: Sample.time(now), graceEnd: Sample.time(now), limit: 10)
            }
            try await sweep(5000)
            #expect(try await store.now(record) == nil)
            #expect(try await create(session(at: 5000), in: store) == .linkUsed)
            // A day more, for a clock that was wrong.
            try await sweep(100_000 + 86_400)
            #expect(try await create(session(at: 300), in: store) == .linkUsed)
            try await sweep(100_000 + 86_401)
            let late = session(at: 200_000)
            #expect(try await create(late, in: store) == .created(late))
        },
    ]
}

extension MetadataAnswer {
    fileprivate var isCreated: Bool { if case .created = self { true } else { false } }

    /// The id of a created or replayed session.
    fileprivate var session: SessionID? {
        switch self {
        case .created(let record), .replayed(let record): record.id
        default: nil
        }
    }
}
