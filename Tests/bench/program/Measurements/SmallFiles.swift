/// Many small files, each in one request, over persistent connections.
struct SmallFiles {
    private let bench: Bench

    static func measure(_ bench: Bench) throws -> Measured {
        let files = SmallFiles(bench: bench)
        var ours: [Double] = []
        var theirs: [Double] = []
        for _ in 0..<bench.scale.runs {
            ours.append(try files.post())
            theirs.append(try files.put())
        }
        let count = bench.scale.smallFileCount
        return Measured(rows: [
            Row(
                "small-files.rate", "POST /files, \(count) x 10 KiB", .perSecond, ours,
                peer: Series(name: "nginx PUT", values: theirs))
        ])
    }

    private func post() throws -> Double {
        bench.scratch.settle()
        let server = try KedgeServer(bench)
        let (rate, firstAnswers) = try send(to: server) { ("POST", "/files") }
        for (index, answer) in firstAnswers { try check(answer, isOf: index) }
        try server.discard()
        return rate
    }

    private func put() throws -> Double {
        bench.scratch.settle()
        let nginx = try Nginx(bench)
        let names = Turns(.max)
        let (rate, _) = try send(to: nginx) { ("PUT", "/file-\(names.take() ?? 0)") }
        try nginx.discard()
        return rate
    }

    /// The answer to the first file of one connection.
    private typealias FirstAnswer = (index: Int, response: HTTPResponse)

    /// Measures files a second, and returns one answer of each connection.
    private func send(
        to server: any Server, _ target: @escaping @Sendable () -> (method: String, path: String)
    ) throws -> (rate: Double, firstAnswers: [FirstAnswer]) {
        let scale = bench.scale
        let source = bench.source
        let turns = Turns(scale.smallFileCount)
        let began = ContinuousClock.now
        let answers = try concurrently(scale.parallelConnectionCount) { _ -> FirstAnswer? in
            let connection = try server.connect()
            var first: FirstAnswer?
            while let index = turns.take() {
                let (method, path) = target()
                let response = try connection.request(
                    method, path,
                    body: .file(
                        source.file, offset: index * scale.smallFileByteCount,
                        byteCount: scale.smallFileByteCount)
                ).require(201, of: "a small file")
                first = first ?? (index, response)
            }
            return first
        }
        let rate = Double(scale.smallFileCount) / elapsedSeconds(since: began)
        return (rate, answers.compactMap { $0 })
    }

    private func check(_ answer: HTTPResponse, isOf index: Int) throws {
        let size = bench.scale.smallFileByteCount
        let finalized = try answer.decode(UploadSession.Finalized.self)
        let digest = try bench.source.digest(at: index * size, byteCount: size)
        guard finalized.size == size, finalized.fileHashSha256 == digest else {
            throw BenchFailure("the server has other bytes of a small file")
        }
    }
}
