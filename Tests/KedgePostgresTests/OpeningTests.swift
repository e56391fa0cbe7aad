import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct OpeningTests {
    @Test func `nodes that start at once migrate once, and all of them work`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        try await withThrowingTaskGroup { group in
            for _ in 0..<5 {
                group.addTask {
                    let store = try await openStore(url)
                    _ = try await store.make()
                    try await store.close()
                }
            }
            try await group.waitForAll()
        }
        #expect(
            try await server.query("SELECT max(number) = count(*) FROM schema_migration", in: url)
                == "t")
        #expect(try await server.query("SELECT count(*) FROM session", in: url) == "5")
    }

    @Test func `a newer schema is refused and left as it is`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        try await openStore(url).close()
        try await server.query(
            "INSERT INTO schema_migration VALUES (99, 'later', repeat('0', 64), 0)", in: url)
        await #expect {
            try await openStore(url)
        } throws: { error in
            guard case PostgresStoreError.newerSchema(found: 99, _) = error else { return false }
            return true
        }
        #expect(try await server.query("SELECT max(number) FROM schema_migration", in: url) == "99")
    }

    @Test func `a migration that was edited after its release is refused`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        try await openStore(url).close()
        try await server.query(
            "UPDATE schema_migration SET sha256 = repeat('0', 64) WHERE number = 2", in: url)
        await #expect(
            throws: PostgresStoreError.editedMigration(number: 2, name: "object_store")
        ) { try await openStore(url) }
    }

    @Test func `a failed migration leaves nothing behind`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        try await server.query("CREATE TABLE finalize_job (it INTEGER)", in: url)
        await #expect(throws: MetadataError.self) { try await openStore(url) }
        #expect(try await server.query("SELECT max(number) FROM schema_migration", in: url) == "1")
        #expect(try await server.query("SELECT to_regclass('blob') IS NULL", in: url) == "t")
        try await server.query("DROP TABLE finalize_job", in: url)
        try await openStore(url).close()
    }

    @Test(arguments: ["synchronous_commit", "fsync", "full_page_writes"])
    func `a server with unsafe durability settings is refused unless the URL allows it`(
        _ setting: String
    ) async throws {
        let server = try await PostgresServer.start(settings: [setting: "off"])
        let expected = PostgresStoreError.unsafeSetting(name: setting, value: "off")
        await #expect(throws: expected) { try await openStore(server.url) }
        #expect(try await server.query("SELECT to_regclass('session') IS NULL") == "t")
        let store = try await openStore(server.url + "?allow_unsafe=on")
        try await store.checkHealth()
        try await store.close()
        await server.stop()
    }

    @Test func `opening a store without a server fails in time and reveals no password`()
        async throws
    {
        let start = ContinuousClock.now
        do {
            _ = try await openStore("postgres://me:secret@127.0.0.1:1/db") {
                $0.timeout = .seconds(1)
            }
            Issue.record("nobody listens there")
        } catch MetadataError.unavailable(let text) {
            #expect(!text.contains("secret"))
            #expect(text.contains("127.0.0.1"))
        }
        #expect(start.duration(to: .now) < .seconds(10))
    }

    /// Nodes agree on leases and expiry although their own clocks differ.
    @Test func `a node uses the clock of the database`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let name = try #require(url.split(separator: "/").last)
        // This function shadows the server's own: the clock of this database is a day ahead.
        try await server.query(
            """
            CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql
            AS 'SELECT pg_catalog.clock_timestamp() + interval ''1 day''';
            ALTER DATABASE \(name) SET search_path = public, pg_catalog
            """, in: url)
        let store = try await openStore(url)
        func difference() async throws -> Int64 {
            let answer = try await server.query(
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", in: url)
            let database = try #require(Int64(answer))
            return abs(store.databaseClock.now().millisecondsSinceEpoch - database)
        }
        #expect(try await difference() < 5000)
        try await store.close()
    }

    @Test func `text with a zero byte is refused, and nothing is stored`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        var record = Sample.session()
        record.mimeType = "text/plain\0html"
        do {
            _ = try await store.make(record)
            Issue.record("PostgreSQL stores no zero bytes")
        } catch MetadataError.failed {
            // The expected failure.
        }
        #expect(try await store.now(record) == nil)
        try await store.close()
    }

    @Test func `operations beyond the waiting limit are refused`() async throws {
        let store = try await openStore(
            try await PostgresServer.shared().makeDatabase() + "?pool_size=1"
        ) { $0.waitingLimit = 2 }
        let refusals = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    do {
                        try await store.checkHealth()
                        return false
                    } catch {
                        return error as? MetadataError
                            == .unavailable("too many operations wait for the database")
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(refusals > 0)
        try await store.checkHealth()
        try await store.close()
        await #expect(throws: MetadataError.self) { try await store.checkHealth() }
    }
}
