/// `kedge download` from our server: the client verifies every chunk and the file.
enum CommandDownload {
    static func measure(_ bench: Bench) throws -> Measured {
        let byteCount = bench.source.byteCount
        let stored = try StoredFile(bench, byteCount: byteCount)
        var samples = CommandSamples()
        for _ in 0..<bench.scale.runs {
            bench.scratch.settle()
            let directory = try bench.scratch.makeDirectory("download")
            defer { Scratch.remove(directory) }
            let copy = "\(directory)/copy"
            let part = try TransferSample.measure(stored.server, byteCount: byteCount) {
                let run = try KedgeCommand(
                    bench, server: stored.server, byteCount: byteCount,
                    ["download", stored.id, "--output", copy])
                samples.client.append(run.sample)
            }
            guard try bench.source.isEqual(toFile: copy, byteCount: byteCount) else {
                throw BenchFailure("what kedge download gave are other bytes")
            }
            samples.server.append(part)
            samples.digests.append(try DigestSpeed.measure(threads: Machine.coreCount))
        }
        try stored.server.discard()
        return Measured(
            rows: samples.rows(
                "kedge-download", "kedge download", byteCount: byteCount,
                passes: DigestPasses.clientOfDownload))
    }
}
