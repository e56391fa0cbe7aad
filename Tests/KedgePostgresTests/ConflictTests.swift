import KedgeEngine
import KedgeLocks
import KedgePostgres
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct ConflictTests {
    /// Raises the SQLSTATE in so many runs of a transaction; returns the number of the run that
    /// succeeded.
    private func run(_ state: String, times: Int) async throws -> Int {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        let runs = Mutex(0)
        let result: Result<Int, any Error>
        do {
            result = .success(
                try await store.write { db in
                    let number = runs.withLock { count in
                        count += 1
                        return count
                    }
                    if number <= times {
                        try db.script("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '\(state)'; END $$")
                    }
                    return number
                })
        } catch {
            result = .failure(error)
        }
        try await store.checkHealth()
        try await store.close()
        return try result.get()
    }

    @Test(arguments: ["40001", "40P01"])
    func `a transaction that lost a conflict is retried, up to five runs`(_ state: String)
        async throws
    {
        #expect(try await run(state, times: 4) == 5)
        await expectUnavailable { _ = try await run(state, times: 9) }
    }

    @Test(arguments: ["55P03", "57014", "53200"])
    func `a server that is too busy is reported as unavailable`(_ state: String) async throws {
        await expectUnavailable { _ = try await run(state, times: 1) }
    }

    @Test func `a full disk of the database server is reported as full`() async throws {
        await #expect {
            _ = try await run("53100", times: 1)
        } throws: { error in
            if case MetadataError.full = error { true } else { false }
        }
    }

    @Test(arguments: ["25P02", "23505", "42601", "22021"])
    func `a programming error is not retried`(_ state: String) async throws {
        await #expect {
            _ = try await run(state, times: 1)
        } throws: { error in
            if case MetadataError.failed = error { true } else { false }
        }
    }

    @Test func `two transactions that deadlock both succeed`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        let records = [try await store.make(), try await store.make()]
        try await withThrowingTaskGroup { group in
            for order in [records, records.reversed()] {
                group.addTask {
                    try await store.write { db in
                        for record in order {
                            _ = try db.lockedSession(record.id)
                            _ = try db.query("SELECT pg_sleep(0.2)::text")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        try await store.close()
    }

    private func expectUnavailable(_ operation: () async throws -> Void) async {
        await #expect {
            try await operation()
        } throws: { error in
            if case MetadataError.unavailable = error { true } else { false }
        }
    }
}
