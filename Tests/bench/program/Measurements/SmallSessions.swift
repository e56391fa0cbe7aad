/// Sessions of one small chunk: create, send, finalize, each an acknowledged step.
enum SmallSessions {
    static func measure(_ bench: Bench) throws -> Measured {
        let scale = bench.scale
        let serial = try contents(bench, scale.serialSessionCount)
        let parallel = try contents(bench, scale.parallelSessionCount)
        var one: [Double] = []
        var many: [Double] = []
        for _ in 0..<scale.runs {
            one.append(try rate(bench, serial, connectionCount: 1))
            many.append(
                try rate(bench, parallel, connectionCount: scale.parallelConnectionCount))
        }
        return Measured(rows: [
            Row("sessions-1.rate", "sessions of 10 KiB, 1 conn.", .perSecond, one),
            Row(
                "sessions-\(scale.parallelConnectionCount).rate",
                "sessions of 10 KiB, \(scale.parallelConnectionCount) conn.", .perSecond, many),
        ])
    }

    /// Makes files of one chunk that differ from each other.
    static func contents(_ bench: Bench, _ count: Int) throws -> [Content] {
        try (0..<count).map { index in
            try Content(
                bench.source, byteCount: bench.scale.smallFileByteCount,
                chunkByteCount: 256 << 10, firstChunk: index)
        }
    }

    private static func rate(
        _ bench: Bench, _ contents: [Content], connectionCount: Int
    ) throws -> Double {
        bench.scratch.settle()
        let server = try KedgeServer(bench)
        let rate = try rate(contents, to: server, connectionCount: connectionCount)
        try server.discard()
        return rate
    }

    /// Uploads each content in a session of its own, and measures sessions a second.
    ///
    /// - Parameters:
    ///   - fields: Fields of every request.
    ///   - links: The `put` link of each session; empty for a client with other credentials.
    static func rate(
        _ contents: [Content], to server: KedgeServer, connectionCount: Int,
        fields: [String] = [], links: [String] = []
    ) throws -> Double {
        let turns = Turns(contents.count)
        let elapsed = try elapsedSeconds {
            _ = try concurrently(connectionCount) { _ in
                let connection = try server.connect(fields: fields)
                while let index = turns.take() {
                    let content = contents[index]
                    let session = try UploadSession.create(
                        for: content, link: links.isEmpty ? nil : links[index], on: connection)
                    try session.put(0, on: connection)
                    let answer = try session.finalize(on: connection)
                    guard answer.fileHashSha256 == content.chunk(0).digest else {
                        throw BenchFailure("the server has another SHA-256 of a small file")
                    }
                }
            }
        }
        return Double(contents.count) / elapsed
    }
}
