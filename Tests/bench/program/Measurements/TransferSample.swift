/// One transfer: its time, and the usage of the processes of one side.
struct TransferSample: Sendable {
    let byteCount: Int
    let seconds: Double
    let cpuSeconds: Double
    /// Maximum resident size since the start of the processes.
    let peakKiB: Int

    var mebibytesPerSecond: Double { Double(byteCount) / Double(1 << 20) / seconds }
    var cpuSecondsPerGiB: Double { cpuSeconds / Double(byteCount) * Double(1 << 30) }
    var peakMiB: Double { Double(peakKiB) / 1024 }

    /// Runs a transfer with a server, and returns the server's sample.
    static func measure(
        _ server: any Server, byteCount: Int, _ transfer: () throws -> Void
    ) throws -> TransferSample {
        let before = server.usage.cpuSeconds
        let elapsed = try elapsedSeconds(of: transfer)
        let usage = server.usage
        return TransferSample(
            byteCount: byteCount, seconds: elapsed, cpuSeconds: usage.cpuSeconds - before,
            peakKiB: usage.peakKiB)
    }
}

extension [TransferSample] {
    /// The rows of a transfer: speed, and CPU and memory of the server.
    ///
    /// - Parameters:
    ///   - id: First part of the rows' ids.
    ///   - peer: The same transfer with another server.
    func rows(
        _ id: String, _ title: String, peer: (name: String, samples: [TransferSample])? = nil,
        floor: Row.Floor? = nil
    ) -> [Row] {
        func series(_ value: (TransferSample) -> Double) -> Series? {
            peer.map { Series(name: $0.name, values: $0.samples.map(value)) }
        }
        return [
            Row(
                "\(id).speed", title, .mebibytesPerSecond, map(\.mebibytesPerSecond),
                peer: series(\.mebibytesPerSecond), floor: floor),
            Row(
                "\(id).cpu", "\(title): server", .cpuSecondsPerGiB, map(\.cpuSecondsPerGiB),
                peer: series(\.cpuSecondsPerGiB)),
            Row(
                "\(id).memory", "\(title): server", .mebibytes, map(\.peakMiB),
                peer: series(\.peakMiB)),
        ]
    }
}
