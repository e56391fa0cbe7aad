/// The status of a session with very many chunks: complete, and with every other chunk missing.
struct StatusTime {
    private let bench: Bench
    /// Size of a chunk, so small that the chunks are sent quickly.
    private static let chunkByteCount = 1 << 10

    static func measure(_ bench: Bench) throws -> Measured {
        let status = StatusTime(bench: bench)
        let count = bench.scale.statusChunkCount
        let server = try KedgeServer(
            bench, options: ["--limits-min-chunk-size", "\(chunkByteCount)"])
        let content = try Content(
            bench.source, byteCount: count * chunkByteCount, chunkByteCount: chunkByteCount)
        let session = try UploadSession.create(for: content, on: server.connect())
        try status.send(session, Array(stride(from: 0, to: count, by: 2)), to: server)
        let gaps = try status.ask(session, server, "status-gaps", "every other of \(count)")
        try status.send(session, Array(stride(from: 1, to: count, by: 2)), to: server)
        let whole = try status.ask(session, server, "status-whole", "all of \(count)")
        try server.discard()
        return Measured(rows: gaps + whole)
    }

    private func send(_ session: UploadSession, _ indices: [Int], to server: KedgeServer) throws {
        let turns = Turns(indices.count)
        _ = try concurrently(bench.scale.parallelConnectionCount) { _ in
            let connection = try server.connect()
            while let turn = turns.take() { try session.put(indices[turn], on: connection) }
        }
    }

    private func ask(
        _ session: UploadSession, _ server: KedgeServer, _ id: String, _ chunks: String
    ) throws -> [Row] {
        let title = "status, \(chunks) chunks"
        return try ask(session, .list, server, id, title)
            + ask(session, .ranges, server, "\(id)-ranges", "\(title), as ranges")
    }

    private func ask(
        _ session: UploadSession, _ form: UploadSession.StatusForm, _ server: KedgeServer,
        _ id: String, _ title: String
    ) throws -> [Row] {
        let connection = try server.connect()
        var byteCount = 0
        let times = try (0..<bench.scale.statusAsks).map { _ in
            try elapsedSeconds { byteCount = try session.status(form, on: connection) } * 1000
        }
        return [
            Row("\(id).time", title, .milliseconds, times),
            Row("\(id).answer", "\(title): answer", .kibibytes, [Double(byteCount) / 1024]),
        ]
    }
}
