/// The scale of the measurements.
struct Scale: Sendable {
    /// Number of times that each throughput is measured; tables show the median.
    var runs = 5
    /// Size of the file of uploads by the raw client and of downloads with curl, in bytes.
    var rawByteCount = 2 << 30
    var chunkByteCount = 4 << 20
    var smallFileCount = 10_000
    let smallFileByteCount = 10 << 10
    /// Number of sessions of one small chunk, over one connection and over many.
    var serialSessionCount = 300
    var parallelSessionCount = 3000
    /// Number of clients of the measurements that have many.
    let parallelConnectionCount = 32
    /// Sizes of the files whose finalize is timed.
    var finalizeSmall = 8 << 20
    var finalizeMedium = 512 << 20
    var finalizeLarge = 8 << 30
    /// Number of rounds of the large file, which takes longest.
    var finalizeLargeRounds = 3
    /// Number of JSON Web Tokens that are verified for the first time.
    var newTokenCount = 500
    /// Number of requests for ids of other owners, and as many for unknown ids.
    var foreignAskCount = 10_000
    /// Number of sessions that an owner creates with and without quotas.
    var quotaSessionCount = 5000
    let metricsAsks = 200
    var statusChunkCount = 100_000
    let statusAsks = 20
    var idleSessionCount = 10_000
    let idleConnectionCount = 1000
    var idleTLSConnectionCount = 1000
    var slowUploadCount = 1000
    let slowBytesPerSecond = 100 << 10
    var slowSeconds = 20
    var inFlightCount = 64
    let inFlightByteCount = 1 << 30
    var inFlightSeconds = 20
    /// Number of bytes after which the uploads in flight stop early, to spare the disk.
    var inFlightBudgetByteCount = 12 << 30

    static let full = Scale()

    /// Runs everything once and small, in two minutes.
    static var smoke: Scale {
        var scale = Scale()
        scale.runs = 1
        scale.rawByteCount = 128 << 20
        scale.smallFileCount = 1000
        scale.serialSessionCount = 50
        scale.parallelSessionCount = 320
        scale.finalizeMedium = 64 << 20
        scale.finalizeLarge = 0
        scale.newTokenCount = 50
        scale.foreignAskCount = 500
        scale.quotaSessionCount = 500
        scale.statusChunkCount = 2000
        scale.idleSessionCount = 1000
        scale.idleTLSConnectionCount = 200
        scale.slowUploadCount = 50
        scale.slowSeconds = 8
        scale.inFlightCount = 16
        scale.inFlightSeconds = 4
        scale.inFlightBudgetByteCount = 2 << 30
        return scale
    }

    /// Size of the file of `kedge upload` and `kedge download`, which is also the source of all
    /// other bytes: full chunks, and so many that no two small files are equal.
    var commandByteCount: Int {
        let wanted = max(2 * rawByteCount, 256 << 20)
        return (wanted + chunkByteCount - 1) / chunkByteCount * chunkByteCount
    }

    /// Space for the source and for the largest measurement beside it, with a server's copy and a
    /// download.
    var neededByteCount: Int {
        commandByteCount
            + max(2 * commandByteCount, finalizeLarge, inFlightBudgetByteCount) + (1 << 30)
    }
}
