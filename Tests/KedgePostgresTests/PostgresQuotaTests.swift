import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct PostgresQuotaTests {
    @Test(arguments: QuotaConformance.all)
    func `the PostgreSQL store keeps each promise about quotas`(
        _ promise: QuotaConformance.Case
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        try await promise.run { try await openStore(url) }
    }

    private static func withNodes(
        _ body: ([PostgresStore], _ url: String) async throws -> Void
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        var nodes: [PostgresStore] = []
        for _ in 0..<3 { nodes.append(try await openStore(url)) }
        try await body(nodes, url)
        #expect(try await nodes[0].quotaDrifts(after: nil, limit: 10) == [])
        for node in nodes { try await node.close() }
    }

    @Test func `three nodes give exactly fifty of two hundred creates a place`() async throws {
        try await Self.withNodes { nodes, _ in
            let room = SessionRoom(maxOpenCount: 1_000_000, quota: QuotaLimits(openSessions: 50))
            let created = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let outcome = try await nodes[number % 3].createSession(
                            Sample.session(), idempotencyKey: nil, adopting: nil, in: room)
                        if case .created = outcome { return true }
                        return false
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(created == 50)
            let quota = try await nodes[1].quota(of: Sample.owner, within: .none)
            #expect(quota.openSessionCount == 50 && quota.reservedBytes == 50 * 250)
        }
    }

    /// Each node makes room, expires, completes and cancels sessions of several owners at once.
    @Test func `nodes that change several owners at once keep the sums and do not deadlock`()
        async throws
    {
        let notices = Notices()
        let url = try await PostgresServer.shared().makeDatabase()
        var nodes: [PostgresStore] = []
        for _ in 0..<3 { nodes.append(try await openStore(url, onNotice: notices.add)) }
        try await withThrowingTaskGroup(of: Void.self) { [nodes] group in
            for (index, node) in nodes.enumerated() {
                for worker in 0..<3 {
                    group.addTask {
                        try await Self.work(on: node, seed: UInt64(index * 10 + worker))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(notices.all.filter { $0.contains("deadlock") } == [])
        #expect(try await nodes[0].quotaDrifts(after: nil, limit: 10) == [])
        for node in nodes { try await node.close() }
    }

    private static func work(on node: PostgresStore, seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let owners = ["d", "b", "a", "c"].map { OwnerID($0) }
        for step in 0..<30 {
            let owner = owners[Int.random(in: 0..<4, using: &random)]
            let record = Sample.session(
                owner: owner, expiresAt: Sample.time(Int64.random(in: 1...40, using: &random)))
            let outcome = try await node.createSession(
                record, idempotencyKey: nil, adopting: nil,
                in: SessionRoom(maxOpenCount: 6, client: owner.text))
            if case .full = outcome { continue }
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                // Another worker may have removed it to make room.
                await Self.ignoringLoss {
                    try await node.cancelSession(record.id, owner: owner)
                }
            case 1:
                await Self.ignoringLoss {
                    _ = try await node.commit(
                        (0..<3).map { Sample.chunk($0) }, touching: Sample.touch(record))
                    _ = try await node.beginFinalize(
                        of: record.id, digest: Sample.digest("\(seed)"), fileID: .random())
                    let file = try await node.completeFinalize(of: record.id, at: Sample.time(1))
                    try await node.deleteFile(file.id, owner: owner, at: Sample.time(2))
                }
            default:
                _ = try await node.expireSessions(
                    now: Sample.time(Int64(step)), graceEnd: Sample.time(-1000), limit: 100)
            }
        }
    }

    /// Runs operations on a session that another worker may end.
    private static func ignoringLoss(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch MetadataError.notFound {
            return
        } catch MetadataError.wrongState {
            return
        } catch {
            Issue.record(error)
        }
    }

    /// Statements of a version that knows no quotas, which may run beside this one.
    @Test func `the sums follow the statements of a version without quotas`() async throws {
        try await Self.withNodes { nodes, url in
            let server = try await PostgresServer.shared()
            func sums(_ owner: String) async throws -> [Int64] {
                let quota = try await nodes[0].quota(of: OwnerID(owner), within: .none)
                return [quota.storedBytes, quota.reservedBytes, quota.openSessionCount]
            }
            let id = String(repeating: "1", count: 32)
            _ = try await server.query(
                """
                INSERT INTO session (id, owner, staging_key, file_name, chunk_size, metadata,
                    state, created_at, expires_at)
                VALUES ('\(id)', 'a', '\(id)', 'name', 100, '{}', 'open', 0, 0)
                """, in: url)
            #expect(try await sums("a") == [0, 0, 1])
            _ = try await server.query("UPDATE session SET file_size = 40", in: url)
            #expect(try await sums("a") == [0, 40, 1])
            _ = try await server.query(
                """
                UPDATE session SET state = 'finalizing', file_id = '\(id)',
                    final_sha256 = decode(repeat('00', 32), 'hex');
                INSERT INTO file (id, owner, session_id, session, file_name, byte_count, sha256,
                    chunk_size, created_at)
                SELECT file_id, owner, id, number, file_name, file_size, final_sha256, chunk_size,
                    0 FROM session;
                UPDATE session SET state = 'completed', staging_key = NULL
                """, in: url)
            #expect(try await sums("a") == [40, 0, 0])
            _ = try await server.query("UPDATE file SET owner = 'b'", in: url)
            #expect(try await sums("a") == [0, 0, 0])
            #expect(try await sums("b") == [40, 0, 0])
            _ = try await server.query("UPDATE file SET deleted_at = 1", in: url)
            #expect(try await sums("b") == [0, 0, 0])
        }
    }

    @Test func `wrong sums are repaired while a node creates sessions`() async throws {
        try await Self.withNodes { nodes, url in
            _ = try await nodes[0].make()
            let server = try await PostgresServer.shared()
            _ = try await server.query(
                "UPDATE owner SET open_sessions = 90, reserved_bytes = 1, stored_bytes = 7", in: url
            )
            let drifts = try await nodes[1].quotaDrifts(after: nil, limit: 10)
            #expect(drifts.map(\.kept?.openSessionCount) == [90])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<40 { group.addTask { _ = try await nodes[0].make() } }
                for _ in 0..<3 {
                    group.addTask { try await nodes[1].repairQuota(of: Sample.owner) }
                }
                try await group.waitForAll()
            }
            let quota = try await nodes[2].quota(of: Sample.owner, within: .none)
            #expect(quota.openSessionCount == 41 && quota.storedBytes == 0)
        }
    }

    /// A commit of a chunk must not wait for other transactions of the owner.
    @Test func `a commit of a chunk does not need the owner's row`() async throws {
        try await Self.withNodes { nodes, _ in
            let record = try await nodes[0].make()
            let (locked, isLocked) = AsyncStream.makeStream(of: Void.self)
            let (released, release) = AsyncStream.makeStream(of: Void.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await nodes[1].write { db in
                        _ = try db.query("SELECT 1 FROM owner FOR UPDATE")
                        isLocked.finish()
                        // Long enough for a commit that does not wait, and bounded.
                        _ = try db.query("SELECT pg_sleep(1)::text")
                    }
                    release.finish()
                }
                for await _ in locked {}
                let start = ContinuousClock.now
                _ = try await nodes[0].commit([Sample.chunk(0)], touching: Sample.touch(record))
                #expect(start.duration(to: .now) < .milliseconds(900))
                for await _ in released {}
                try await group.waitForAll()
            }
        }
    }
}
