/// The time of a scrape, after requests of very different kinds.
enum MetricsTime {
    /// Operations whose answers are counted apart; an unknown id is enough for that.
    private static let operations: [(method: String, path: String)] = [
        ("GET", "/"), ("GET", "/openapi.yaml"), ("GET", "/me"), ("GET", "/healthz"),
        ("GET", "/uploads/sessions"), ("POST", "/uploads/sessions"),
        ("GET", "/uploads/sessions/ID"), ("DELETE", "/uploads/sessions/ID"),
        ("PUT", "/uploads/sessions/ID/chunks/0"), ("POST", "/uploads/sessions/ID/finalize"),
        ("GET", "/files"), ("OPTIONS", "/files"), ("GET", "/files/ID"), ("DELETE", "/files/ID"),
        ("GET", "/files/ID/meta"), ("GET", "/files/ID/chunks"), ("POST", "/links"),
        ("DELETE", "/links/ID"), ("OPTIONS", "/tus/"), ("POST", "/tus/"),
        ("OPTIONS", "/tus/ID"), ("PATCH", "/tus/ID"), ("GET", "/tus/ID"), ("DELETE", "/tus/ID"),
        ("OPTIONS", "/uploads/resumable/ID"), ("GET", "/uploads/resumable/ID"),
        ("PATCH", "/uploads/resumable/ID"), ("DELETE", "/uploads/resumable/ID"),
        ("GET", "/tokens"), ("POST", "/tokens"), ("DELETE", "/tokens/ID"), ("GET", "/owners"),
        ("GET", "/owners/ID"), ("PUT", "/owners/ID"), ("GET", "/nothing"), ("PUT", "/nothing"),
    ]
    private static let unknownID = String(repeating: "0", count: 32)

    static func measure(_ bench: Bench) throws -> Measured {
        let scale = bench.scale
        let server = try KedgeServer(bench)
        _ = try SmallSessions.rate(
            try SmallSessions.contents(bench, scale.serialSessionCount), to: server,
            connectionCount: scale.parallelConnectionCount)
        for (method, path) in operations {
            // A refused request may end its connection.
            _ = try server.connect().request(
                method, path.replacing("ID", with: unknownID))
        }
        let connection = try server.connect()
        var byteCount = 0
        let times = try (0..<scale.metricsAsks).map { _ in
            try elapsedSeconds {
                byteCount = try connection.request("GET", "/metrics")
                    .require(200, of: "a scrape").body.count
            } * 1000
        }
        try server.discard()
        return Measured(rows: [
            Row("metrics.time", "GET /metrics", .milliseconds, times),
            Row("metrics.answer", "GET /metrics: answer", .kibibytes, [Double(byteCount) / 1024]),
        ])
    }
}
