import Dispatch
import KedgeEngine
import KedgeLocks
import KedgePostgres
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct LostConnectionTests {
    /// Lends a store behind a proxy.
    private func withProxy(
        _ server: PostgresServer,
        _ body: (_ proxy: CommitCutter, _ store: PostgresStore) async throws -> Void
    ) async throws {
        let name = try #require(try await server.makeDatabase().split(separator: "/").last)
        let proxy = try CommitCutter(upstreamPort: server.port)
        let store = try await openStore(
            "postgresql://kedge@127.0.0.1:\(proxy.port)/\(name)?listen=off&sslmode=disable")
        try await body(proxy, store)
        try await store.close()
        proxy.stop()
    }

    @Test func `a commit whose answer is lost is looked up and reported as committed`()
        async throws
    {
        try await withProxy(try await .shared()) { proxy, store in
            let record = try await store.make()
            proxy.cutNextCommit(.answer)
            // A second run would find that the chunk is already committed.
            let outcome = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(record))
            #expect(outcome == [.committed])
            #expect(try await store.now(record)?.chunks == [Sample.chunk(0)])
            #expect(try await store.now(record)?.revision == 1)
        }
    }

    @Test func `a commit that never arrived is repeated`() async throws {
        try await withProxy(try await .shared()) { proxy, store in
            let record = try await store.make()
            proxy.cutNextCommit(.question)
            let outcome = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(record))
            #expect(outcome == [.committed])
            #expect(try await store.now(record)?.chunks == [Sample.chunk(0)])
        }
    }

    /// After a crash, the number of a lost transaction may belong to another one, so it proves
    /// nothing.
    @Test func `a transaction number from before a server crash is not trusted`()
        async throws
    {
        let server = try await PostgresServer.start()
        try await withProxy(server) { proxy, store in
            let record = try await store.make()
            let isBack = DispatchSemaphore(value: 0)
            proxy.cutNextCommit(.answer) {
                Task {
                    // If the server does not come back, a later step fails the test.
                    try? await server.kill()
                    try? await server.restart()
                    isBack.signal()
                }
                isBack.wait()
            }
            let outcome = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(record))
            #expect(outcome == [.alreadyCommitted], "the second run finds what the first one did")
        }
        await server.stop()
    }

    @Test(arguments: [CommitCutter.Cut.answer, .question])
    func `a session is created once, whether its commit or the answer is lost`(
        _ cut: CommitCutter.Cut
    ) async throws {
        try await withProxy(try await .shared()) { proxy, store in
            proxy.cutNextCommit(cut)
            let record = Sample.session()
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let outcome = try await store.createSession(
                record, idempotencyKey: key, adopting: nil)
            guard case .created(record) = outcome else {
                Issue.record("expected a new session")
                return
            }
        }
    }

    /// The transaction runner does this when the result of the first run is unknown.
    @Test func `creating the same session again gives the same answer`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        for key in [nil, IdempotencyKey(key: "key", fingerprint: "request")] {
            let record = Sample.session()
            for _ in 0..<2 {
                let outcome = try await store.createSession(
                    record, idempotencyKey: key, adopting: nil)
                guard case .created(record) = outcome else {
                    Issue.record("expected the session of the first run")
                    return
                }
            }
        }
        try await store.close()
    }

    @Test func `a transaction whose backend is terminated is retried`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let notices = Notices()
        let store = try await openStore(url, onNotice: { notices.add($0) })
        let attempts = Mutex(0)
        let value = try await store.write { db in
            let number = attempts.withLock { count in
                count += 1
                return count
            }
            if number == 1 {
                _ = try db.query("SELECT pg_terminate_backend(pg_backend_pid())")
            }
            return number
        }
        #expect(value == 2)
        #expect(notices.all.count == 1)
        try await store.close()
    }

    @Test func `dead idle connections are replaced without a failed operation`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let store = try await openStore(url)
        let record = try await store.make()
        try await server.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            """, in: url)
        for index in 0..<3 {
            let outcome = try await store.commit(
                [Sample.chunk(index)], touching: Sample.touch(record))
            #expect(outcome == [.committed])
        }
        try await store.close()
    }

    @Test func `operations fail in time during an outage, and work after it`()
        async throws
    {
        let server = try await PostgresServer.start()
        let store = try await openStore(server.url) { $0.timeout = .seconds(1) }
        let record = try await store.make()
        try await server.kill()
        let start = ContinuousClock.now
        await withTaskGroup { group in
            for index in 0..<12 {
                group.addTask {
                    do {
                        _ = try await store.commit(
                            [Sample.chunk(index % 3)], touching: Sample.touch(record))
                        Issue.record("nobody was there to commit")
                    } catch MetadataError.unavailable {
                        // The expected failure.
                    } catch {
                        Issue.record(error)
                    }
                }
            }
        }
        #expect(start.duration(to: .now) < .seconds(15))
        try await server.restart()
        #expect(try await store.now(record)?.chunks == [])
        try await store.close()
        await server.stop()
    }

    @Test func `an operation waits for the end of a short outage`() async throws {
        let server = try await PostgresServer.start()
        let store = try await openStore(server.url)
        let record = try await store.make()
        try await server.kill()
        async let outcome = store.commit([Sample.chunk(0)], touching: Sample.touch(record))
        try await server.restart()
        #expect(try await outcome == [.committed])
        try await store.close()
        await server.stop()
    }

    /// A commit that waits for a standby that never answers is neither done nor undone.
    @Test func `a hanging commit fails in time`() async throws {
        let server = try await PostgresServer.start()
        let store = try await openStore(server.url) {
            $0.timeout = .seconds(1)
            $0.statementTimeout = .seconds(1)
        }
        let record = try await store.make()
        try await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try await server.query("SELECT pg_reload_conf()")
        do {
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            Issue.record("no standby confirmed the commit")
        } catch MetadataError.unavailable {
            // The expected failure.
        }
        try await store.close()
        await server.stop()
    }
}
