/// How much of everything is measured.
struct Scale: Sendable {
    /// Times that each throughput is measured; tables show the median.
    var runs = 5
    /// File of the uploads by the raw client and of the downloads with curl, in bytes.
    var rawByteCount = 2 << 30
    var chunkByteCount = 4 << 20
    var smallFileCount = 10_000
    let smallFileByteCount = 10 << 10
    /// Sessions of one small chunk, over one connection and over many.
    var serialSessionCount = 300
    var parallelSessionCount = 3000
    /// Clients of the measurements that have many.
    let parallelConnectionCount = 32
    /// Files whose finalize is timed.
    var finalizeSmall = 8 << 20
    var finalizeMedium = 512 << 20
    var finalizeLarge = 8 << 30
    /// Rounds of the large one, which takes longest.
    var finalizeLargeRounds = 3
    var statusChunkCount = 100_000
    let statusAsks = 20
    var idleSessionCount = 10_000
    let idleConnectionCount = 1000
    var slowUploadCount = 1000
    let slowBytesPerSecond = 100 << 10
    var slowSeconds = 20
    var inFlightCount = 64
    let inFlightByteCount = 1 << 30
    var inFlightSeconds = 20
    /// Bytes after which the uploads in flight stop early, to spare the disk.
    var inFlightBudgetByteCount = 12 << 30

    static let full = Scale()

    /// Everything once and small, 60 seconds in all.
    static var smoke: Scale {
        var scale = Scale()
        scale.runs = 1
        scale.rawByteCount = 128 << 20
        scale.smallFileCount = 1000
        scale.serialSessionCount = 50
        scale.parallelSessionCount = 320
        scale.finalizeMedium = 64 << 20
        scale.finalizeLarge = 0
        scale.statusChunkCount = 2000
        scale.idleSessionCount = 1000
        scale.slowUploadCount = 50
        scale.slowSeconds = 8
        scale.inFlightCount = 16
        scale.inFlightSeconds = 4
        scale.inFlightBudgetByteCount = 2 << 30
        return scale
    }

    /// File of `kedge upload` and `kedge download`, which is also the source of all other bytes: whole
    /// chunks, and enough of them that no small file is equal to another one.
    var commandByteCount: Int {
        let wanted = max(2 * rawByteCount, 256 << 20)
        return (wanted + chunkByteCount - 1) / chunkByteCount * chunkByteCount
    }

    /// Space for the source and for the largest measurement beside it, a server's copy and a download.
    var neededByteCount: Int {
        commandByteCount
            + max(2 * commandByteCount, finalizeLarge, inFlightBudgetByteCount) + (1 << 30)
    }
}
