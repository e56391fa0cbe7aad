/// The memory of idle sessions and idle connections.
struct IdleMemory {
    private let bench: Bench

    static func measure(_ bench: Bench) throws -> Measured {
        let idle = IdleMemory(bench: bench)
        return Measured(rows: try idle.sessions() + [idle.connections()])
    }

    private func sessions() throws -> [Row] {
        let count = bench.scale.idleSessionCount
        let server = try KedgeServer(bench)
        // Threads, pools and statements are made with the first sessions and are not measured here.
        try create(bench.scale.parallelConnectionCount * 10, on: server)
        let before = server.settledResidentMiB()
        try create(count, on: server)
        let after = server.settledResidentMiB()
        try server.stop()
        let began = ContinuousClock.now
        let again = try KedgeServer(bench, directory: server.directory)
        let restart = elapsedSeconds(since: began)
        try again.discard()
        return [
            Row(
                "idle-sessions.memory", "server with \(count) idle sessions", .mebibytes, [after],
                peer: Series(name: "before them", values: [before])),
            Row(
                "idle-sessions.restart", "restart with \(count) idle sessions", .seconds,
                [restart]),
        ]
    }

    private func create(_ count: Int, on server: KedgeServer) throws {
        let content = try Content(bench.source, byteCount: 8 << 20, chunkByteCount: 4 << 20)
        let turns = Turns(count)
        _ = try concurrently(bench.scale.parallelConnectionCount) { _ in
            let connection = try server.connect()
            while turns.take() != nil {
                _ = try UploadSession.create(for: content, on: connection)
            }
        }
    }

    private func connections() throws -> Row {
        let count = bench.scale.idleConnectionCount
        let server = try KedgeServer(bench, options: ["--timeouts-idle-seconds", "600"])
        for _ in 0..<bench.scale.parallelConnectionCount { _ = try usedConnection(server) }
        let before = server.settledResidentMiB()
        let connections = try (0..<count).map { _ in try usedConnection(server) }
        let after = server.settledResidentMiB()
        // Each connection is used once more, which shows that it was open while the memory was
        // read.
        for connection in connections { try use(connection) }
        try server.discard()
        return Row(
            "idle-connections.memory", "server, for each of \(count) idle connections", .kibibytes,
            [(after - before) * 1024 / Double(count)])
    }

    private func usedConnection(_ server: KedgeServer) throws -> BenchConnection {
        let connection = try server.connect()
        try use(connection)
        return connection
    }

    private func use(_ connection: BenchConnection) throws {
        try connection.request("GET", "/healthz").require(200, of: "a health check")
    }
}
