/// Many large uploads at once, long enough to show growing memory. They need not complete.
struct UploadsInFlight {
    static func measure(_ bench: Bench) throws -> Measured {
        let scale = bench.scale
        let server = try KedgeServer(bench)
        let sent = SharedValue(0)
        let contents = try (0..<scale.inFlightCount).map { number in
            try Content(
                bench.source, byteCount: scale.inFlightByteCount,
                chunkByteCount: scale.chunkByteCount, firstChunk: number)
        }
        let began = ContinuousClock.now
        let limit = Double(scale.inFlightSeconds)
        _ = try concurrently(contents.count) { number in
            let connection = try server.connect()
            let session = try UploadSession.create(for: contents[number], on: connection)
            for index in 0..<contents[number].chunkCount {
                guard elapsedSeconds(since: began) < limit,
                    sent.current < scale.inFlightBudgetByteCount
                else { return }
                try session.put(index, on: connection)
                sent.change { $0 += contents[number].chunk(index).byteCount }
            }
        }
        let elapsed = elapsedSeconds(since: began)
        let peak = Double(server.usage.peakKiB) / 1024
        try server.discard()
        let title = "\(contents.count) uploads of 1 GiB in flight"
        return Measured(rows: [
            Row("in-flight.memory", "\(title): server", .mebibytes, [peak]),
            Row(
                "in-flight.speed", "\(title): together", .mebibytesPerSecond,
                [Double(sent.current >> 20) / elapsed]),
        ])
    }
}
