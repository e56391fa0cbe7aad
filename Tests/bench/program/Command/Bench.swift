/// The input of every measurement.
struct Bench: Sendable {
    let settings: Settings
    let scratch: Scratch
    let source: SourceFile

    var scale: Scale { settings.scale }
}

/// The result of a measurement.
struct Measured: Sendable {
    var rows: [Row] = []
    /// Tables of scripts, printed as they are.
    var tables: [String] = []
    /// Measurements that were skipped, and why.
    var notes: [String] = []
}

/// A measurement that can run by itself.
struct Measurement: Sendable {
    /// The name for `--only`.
    let name: String
    let summary: String
    let run: @Sendable (Bench) throws -> Measured

    /// All measurements, in the order in which they run.
    static let all: [Measurement] = [
        Measurement(
            name: "floors", summary: "SHA-256 by libcrypto, dd with fdatasync, loopback sendfile",
            run: Floors.measure),
        Measurement(
            name: "binary", summary: "size of the binary, and time to its first answer",
            run: Binary.measure),
        Measurement(
            name: "upload", summary: "uploads by a client that does not hash, beside nginx PUT",
            run: RawUpload.measure),
        Measurement(
            name: "kedge-upload", summary: "kedge upload, beside the time of all its hashing",
            run: CommandUpload.measure),
        Measurement(
            name: "download", summary: "downloads with curl, beside nginx GET",
            run: CurlDownload.measure),
        Measurement(
            name: "kedge-download", summary: "kedge download, beside the time of all its hashing",
            run: CommandDownload.measure),
        Measurement(
            name: "small-files", summary: "POST /files of 10 KiB, beside nginx PUT",
            run: SmallFiles.measure),
        Measurement(
            name: "sessions", summary: "create, one small chunk, finalize",
            run: SmallSessions.measure),
        Measurement(
            name: "finalize", summary: "finalize of files of very different size",
            run: FinalizeTime.measure),
        Measurement(
            name: "status", summary: "the state of a session with very many chunks",
            run: StatusTime.measure),
        Measurement(
            name: "idle", summary: "memory of idle sessions and connections, and a restart",
            run: IdleMemory.measure),
        Measurement(
            name: "slow-uploads", summary: "very many slow uploads at once",
            run: SlowUploads.measure),
        Measurement(
            name: "in-flight", summary: "memory with many large uploads in flight",
            run: UploadsInFlight.measure),
        Measurement(
            name: "auth", summary: "tokens and links beside no credential, and answers about ids",
            run: AuthCost.measure),
        Measurement(
            name: "quota", summary: "sessions created with quotas, beside none",
            run: QuotaCost.measure),
        Measurement(
            name: "tls", summary: "transfers with TLS by curl, beside none and nginx",
            run: TLSTransfers.measure),
        Measurement(
            name: "metrics", summary: "the answer to a scrape",
            run: MetricsTime.measure),
        Measurement(
            name: "links", summary: "far, lossy and dying links, beside curl, rclone and tuspy",
            run: Links.measure),
    ]
}
