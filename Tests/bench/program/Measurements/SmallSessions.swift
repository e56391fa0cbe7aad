/// Sessions of one small chunk: create, send, finalize, each an acknowledged step.
struct SmallSessions {
    private let bench: Bench

    static func measure(_ bench: Bench) throws -> Measured {
        let sessions = SmallSessions(bench: bench)
        let scale = bench.scale
        let serial = try sessions.contents(scale.serialSessionCount)
        let parallel = try sessions.contents(scale.parallelSessionCount)
        var one: [Double] = []
        var many: [Double] = []
        for _ in 0..<scale.runs {
            one.append(try sessions.rate(serial, connectionCount: 1))
            many.append(
                try sessions.rate(parallel, connectionCount: scale.parallelConnectionCount))
        }
        return Measured(rows: [
            Row("sessions-1.rate", "sessions of 10 KiB, 1 conn.", .perSecond, one),
            Row(
                "sessions-\(scale.parallelConnectionCount).rate",
                "sessions of 10 KiB, \(scale.parallelConnectionCount) conn.", .perSecond, many),
        ])
    }

    /// Makes files of one chunk that differ from each other.
    private func contents(_ count: Int) throws -> [Content] {
        try (0..<count).map { index in
            try Content(
                bench.source, byteCount: bench.scale.smallFileByteCount,
                chunkByteCount: 256 << 10, firstChunk: index)
        }
    }

    private func rate(_ contents: [Content], connectionCount: Int) throws -> Double {
        bench.scratch.settle()
        let server = try KedgeServer(bench)
        let turns = Turns(contents.count)
        let elapsed = try elapsedSeconds {
            _ = try concurrently(connectionCount) { _ in
                let connection = try server.connect()
                while let index = turns.take() {
                    let content = contents[index]
                    let session = try UploadSession.create(for: content, on: connection)
                    try session.put(0, on: connection)
                    let answer = try session.finalize(on: connection)
                    guard answer.fileHashSha256 == content.chunk(0).digest else {
                        throw BenchFailure("the server has another SHA-256 of a small file")
                    }
                }
            }
        }
        try server.discard()
        return Double(contents.count) / elapsed
    }
}
