/// `kedge upload` to our server: both sides hash everything.
enum CommandUpload {
    private struct Facts: Decodable {
        let sha256: String
        let size: Int
    }

    static func measure(_ bench: Bench) throws -> Measured {
        let byteCount = bench.source.byteCount
        let digest = try bench.source.digest(at: 0, byteCount: byteCount)
        var samples = CommandSamples()
        for _ in 0..<bench.scale.runs {
            bench.scratch.settle()
            let server = try KedgeServer(bench)
            var run: KedgeCommand?
            let part = try TransferSample.measure(server, byteCount: byteCount) {
                run = try KedgeCommand(
                    bench, server: server, byteCount: byteCount, ["upload", bench.source.path])
            }
            guard let run, let id = run.remoteFileID else {
                throw BenchFailure("kedge upload told no id")
            }
            let facts = try server.connect().request("GET", "/files/\(id)/meta")
                .require(200, of: "the facts of a file").decode(Facts.self)
            guard facts.sha256 == digest, facts.size == byteCount else {
                throw BenchFailure("the server has another file than the one uploaded")
            }
            try server.discard()
            samples.client.append(run.sample)
            samples.server.append(part)
            samples.digests.append(try DigestSpeed.measure(threads: Machine.coreCount))
        }
        return Measured(
            rows: samples.rows(
                "kedge-upload", "kedge upload", byteCount: byteCount,
                passes: DigestPasses.clientOfUpload + DigestPasses.serverOfUpload))
    }
}
