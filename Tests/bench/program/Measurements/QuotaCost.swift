/// The sessions that one owner creates in a second, with quotas and without.
struct QuotaCost {
    private let bench: Bench

    /// Limits that are not reached.
    private static let options = [
        "--quota-stored-bytes", "1000000000000", "--quota-open-sessions", "1000000",
        "--quota-file-bytes", "1000000000000",
    ]

    static func measure(_ bench: Bench) throws -> Measured {
        let cost = QuotaCost(bench: bench)
        let hasQuotas = try KedgeServer.hasOption("--quota-stored-bytes", bench)
        var plain: [Double] = []
        var limited: [Double] = []
        for round in 0..<bench.scale.runs {
            if hasQuotas, round.isMultiple(of: 2) { limited.append(try cost.rate(Self.options)) }
            plain.append(try cost.rate([]))
            if hasQuotas, !round.isMultiple(of: 2) { limited.append(try cost.rate(Self.options)) }
        }
        let title = "sessions created, \(bench.scale.parallelConnectionCount) conn."
        // Also for a binary without quotas, to be compared with this one.
        var measured = Measured(rows: [Row("creates.rate", title, .perSecond, plain)])
        if hasQuotas {
            measured.rows.append(
                Row(
                    "quota-creates.rate", "\(title), with quotas", .perSecond, limited,
                    peer: Series(name: "no quotas", values: plain)))
        } else {
            measured.notes.append("this kedge has no option --quota-stored-bytes, so not measured")
        }
        return measured
    }

    private func rate(_ options: [String]) throws -> Double {
        bench.scratch.settle()
        let server = try KedgeServer(bench, options: options)
        let count = bench.scale.quotaSessionCount
        let content = try Content(
            bench.source, byteCount: bench.scale.smallFileByteCount, chunkByteCount: 256 << 10)
        let turns = Turns(count)
        let elapsed = try elapsedSeconds {
            _ = try concurrently(bench.scale.parallelConnectionCount) { _ in
                let connection = try server.connect()
                while turns.take() != nil {
                    _ = try UploadSession.create(for: content, on: connection)
                }
            }
        }
        try server.discard()
        return Double(count) / elapsed
    }
}
