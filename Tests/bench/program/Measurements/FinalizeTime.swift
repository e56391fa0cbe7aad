/// The time of a finalize that is requested as soon as the last chunk is acknowledged.
struct FinalizeTime {
    private let bench: Bench
    /// Number of small files in a round: their finalize is short, so there is time for several.
    private static let smallCount = 10

    static func measure(_ bench: Bench) throws -> Measured {
        let finalize = FinalizeTime(bench: bench)
        let scale = bench.scale
        var small: [Double] = []
        var medium: [Double] = []
        var large: [Double] = []
        for round in 0..<scale.runs {
            bench.scratch.settle()
            let server = try KedgeServer(bench)
            for number in 0..<smallCount {
                small.append(
                    try finalize.time(server, scale.finalizeSmall, firstChunk: 2 * number))
            }
            medium.append(try finalize.time(server, scale.finalizeMedium, firstChunk: 1))
            if scale.finalizeLarge > 0, round < scale.finalizeLargeRounds {
                large.append(try finalize.time(server, scale.finalizeLarge, firstChunk: 3))
            }
            try server.discard()
        }
        let peer = Series(name: "the smallest", values: small)
        var rows = [
            Row("finalize-small.time", title(scale.finalizeSmall), .milliseconds, small),
            Row(
                "finalize-medium.time", title(scale.finalizeMedium), .milliseconds, medium,
                peer: peer),
        ]
        if !large.isEmpty {
            rows.append(
                Row(
                    "finalize-large.time", title(scale.finalizeLarge), .milliseconds, large,
                    peer: peer))
        }
        return Measured(rows: rows)
    }

    private static func title(_ byteCount: Int) -> String {
        "finalize of \(byteCount >> 20) MiB"
    }

    /// Measures a finalize in milliseconds.
    private func time(_ server: KedgeServer, _ byteCount: Int, firstChunk: Int) throws -> Double {
        let content = try Content(
            bench.source, byteCount: byteCount, chunkByteCount: bench.scale.chunkByteCount,
            firstChunk: firstChunk)
        let session = try UploadSession.create(for: content, on: try server.connect())
        try session.putAll(to: server, connectionCount: 4)
        // The first connection may be closed by now, because it was idle during the upload.
        let connection = try server.connect()
        return try elapsedSeconds { _ = try session.finalize(on: connection) } * 1000
    }
}
