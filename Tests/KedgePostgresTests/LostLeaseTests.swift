import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// Writer leases are in an unlogged table: a crash of the database loses them while their writers
/// live. The acknowledged bytes of a partial must stay all the same.
@Suite(.timeLimit(.minutes(2))) struct LostLeaseTests {
    /// A node's writer of a chunk, which does the same as a `LiveSession`.
    private struct Writer: Sendable {
        let store: PostgresStore
        var token: FencingToken

        init(_ store: PostgresStore, _ text: String) {
            self.store = store
            token = FencingToken(index: 0, text: text)
        }

        func claim(_ record: SessionRecord) async throws {
            let claim = try await store.claimWriter(
                token, of: record.id, lease: .seconds(60), takesOver: true)
            #expect(claim == .granted)
        }

        mutating func learn(_ record: SessionRecord) async throws {
            let changes = try await store.changes(of: record.id, since: -1)
            token.knownRevision = try #require(changes).revision
        }

        /// - Returns: False when the store reports that the writer was replaced.
        func save(_ byteCount: Int64, _ record: SessionRecord) async throws -> Bool {
            var touch = Sample.touch(record)
            touch.writer = token
            do {
                try await store.savePartial(
                    Sample.partial(0, byteCount: byteCount), touching: touch)
                return true
            } catch MetadataError.writerReplaced {
                return false
            }
        }

        func discard(_ record: SessionRecord) async throws -> Bool {
            do {
                try await store.discardPartial(of: record.id, index: 0, by: token)
                return true
            } catch MetadataError.writerReplaced {
                return false
            }
        }
    }

    private struct Environment {
        let server: PostgresServer
        let url: String
        let store: PostgresStore
        let record: SessionRecord

        func loseLeases() async throws {
            try await server.query("DELETE FROM writer_lease", in: url)
        }

        func byteCount() async throws -> Int64 {
            try await store.now(record)?.partials.first?.byteCount ?? 0
        }
    }

    private func withEnvironment(_ body: (Environment) async throws -> Void) async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let store = try await openStore(url)
        let fixture = Environment(
            server: server, url: url, store: store, record: try await store.make())
        try await body(fixture)
        try await store.close()
    }

    /// Writer A stalls, B takes over and acknowledges more, then A resumes. The leases are lost
    /// after so many of the steps.
    @Test(arguments: 0...7, [false, true])
    func `a stalled writer never invalidates what its successor saved`(
        step: Int, discards: Bool
    ) async throws {
        try await withEnvironment { fixture in
            let record = fixture.record
            var (stalled, next) = (Writer(fixture.store, "a"), Writer(fixture.store, "b"))
            var count = 0
            func mayLoseLeases() async throws {
                if count == step { try await fixture.loseLeases() }
                count += 1
            }
            try await mayLoseLeases()
            try await stalled.claim(record)
            try await mayLoseLeases()
            try await stalled.learn(record)
            try await mayLoseLeases()
            try await next.claim(record)
            try await mayLoseLeases()
            try await next.learn(record)
            try await mayLoseLeases()
            #expect(try await next.save(30, record))
            try await mayLoseLeases()
            #expect(try await next.save(60, record))
            try await mayLoseLeases()
            let isDone =
                discards ? try await stalled.discard(record) : try await stalled.save(20, record)
            #expect(!isDone)
            #expect(try await fixture.byteCount() == 60)
            try await mayLoseLeases()
            // The current writer continues, and may discard bytes that it finds damaged.
            #expect(try await next.save(70, record))
            #expect(try await next.save(60, record))
            #expect(try await next.discard(record))
            #expect(try await fixture.byteCount() == 0)
        }
    }

    /// Writer A saves and stalls; B acknowledges A's bytes without any of its own.
    @Test func `a stalled writer never discards what its successor acknowledged`() async throws {
        try await withEnvironment { fixture in
            let record = fixture.record
            var (stalled, next) = (Writer(fixture.store, "a"), Writer(fixture.store, "b"))
            try await stalled.claim(record)
            try await stalled.learn(record)
            #expect(try await stalled.save(30, record))
            try await next.claim(record)
            try await next.learn(record)
            try await fixture.loseLeases()
            #expect(try await !stalled.discard(record))
            #expect(try await !stalled.save(20, record))
            #expect(try await fixture.byteCount() == 30)
            #expect(try await next.save(40, record))
        }
    }

    /// Writers in any order; the leases are lost between all of their steps. A writer that knows an
    /// older partial than the last saved one can no longer change it.
    @Test(arguments: TortureSeeds.range(from: 1, count: 12))
    func `no writer changes a partial that another one saved after its claim`(
        seed: UInt64
    ) async throws {
        try await withEnvironment { fixture in
            var generator = SplitMix64(seed: seed)
            let record = fixture.record
            var writers: [Writer] = []
            // The last writer to save the row, and the writers that claimed the chunk after that.
            var saver: String?
            var isInformed: Set<String> = []
            for round in 0..<60 {
                try await fixture.loseLeases()
                if writers.isEmpty || Int.random(in: 0..<5, using: &generator) == 0 {
                    var new = Writer(fixture.store, "writer \(round)")
                    try await new.claim(record)
                    // The new writer may acknowledge the present bytes, so they count as its own
                    // from now on.
                    if try await fixture.byteCount() > 0 {
                        saver = new.token.text
                        isInformed = []
                    }
                    try await fixture.loseLeases()
                    try await new.learn(record)
                    writers.append(new)
                    isInformed.insert(new.token.text)
                    continue
                }
                guard let writer = writers.randomElement(using: &generator) else { continue }
                let name = writer.token.text
                let before = try await fixture.byteCount()
                let mayChange = before == 0 || saver == name || isInformed.contains(name)
                let byteCount = Int64.random(in: 1..<100, using: &generator)
                let discards = Int.random(in: 0..<6, using: &generator) == 0
                let isDone =
                    discards
                    ? try await writer.discard(record)
                    : try await writer.save(byteCount, record)
                let context: Comment = "seed \(seed), round \(round), \(name)"
                #expect(isDone == mayChange, context)
                let after = try await fixture.byteCount()
                #expect(after == (isDone ? (discards ? 0 : byteCount) : before), context)
                guard isDone, !discards else { continue }
                saver = name
                isInformed = []
            }
        }
    }

    /// Saves a partial like a node of the previous release, which does not know the new columns.
    private func saveOldStyle(_ byteCount: Int64, _ fixture: Environment) async throws {
        try await fixture.server.query(
            """
            WITH touched AS (
                UPDATE session SET revision = revision + 1 WHERE id = '\(fixture.record.id.text)')
            INSERT INTO partial_chunk (session, idx, byte_count, chunk_size, hash_state)
            SELECT number, 0, \(byteCount), chunk_size, '\\x01'::bytea FROM session
            WHERE id = '\(fixture.record.id.text)'
            ON CONFLICT (session, idx) DO UPDATE SET
                byte_count = excluded.byte_count, hash_state = excluded.hash_state
            """, in: fixture.url)
    }

    @Test(arguments: [false, true])
    func `a node of the previous release shortens no partial, and its saved bytes are safe`(
        isFirst: Bool
    ) async throws {
        try await withEnvironment { fixture in
            let record = fixture.record
            var (stalled, next) = (Writer(fixture.store, "a"), Writer(fixture.store, "b"))
            if !isFirst {
                try await next.claim(record)
                #expect(try await next.save(10, record))
            }
            try await stalled.claim(record)
            try await stalled.learn(record)
            try await fixture.loseLeases()
            try await saveOldStyle(60, fixture)
            try await saveOldStyle(40, fixture)
            #expect(try await fixture.byteCount() == 60)
            #expect(try await !stalled.save(20, record))
            #expect(try await !stalled.discard(record))
            // A new writer knows the saved bytes and continues.
            var last = Writer(fixture.store, "c")
            try await last.claim(record)
            try await last.learn(record)
            #expect(try await last.save(70, record))
            #expect(try await fixture.byteCount() == 70)
        }
    }

    @Test func `a session that adopts a partial can continue it`() async throws {
        try await withEnvironment { fixture in
            var writer = Writer(fixture.store, "a")
            for byteCount: Int64 in [10, 20, 30] {
                #expect(try await writer.save(byteCount, fixture.record))
            }
            let new = Sample.session(createdAt: Sample.time(2000), expiresAt: Sample.time(3000))
            _ = try await fixture.store.createSession(
                new, idempotencyKey: nil, adopting: fixture.record.id)
            writer = Writer(fixture.store, "b")
            try await writer.claim(new)
            try await writer.learn(new)
            #expect(try await writer.save(40, new))
            #expect(try await fixture.store.now(new)?.partials.map(\.byteCount) == [40])
        }
    }
}
