internal import ArgumentParser
internal import KedgeClient

/// The limits of concurrent connections and of the rate.
struct Connections: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Concurrent connections of one transfer, 1 to 32 (default: up to 4).",
            valueName: "count"))
    var connections: Int?
    @Option(
        help: ArgumentHelp(
            "Bytes a second of all transfers of this command together: 2M, or UPLOAD:DOWNLOAD such "
                + "as 500K:off.", valueName: "rate"))
    var bwlimit: RateArgument?

    func validate() throws {
        guard (1...32).contains(connections ?? 1) else {
            throw ValidationError("--connections must be 1 to 32.")
        }
    }

    func apply(to configuration: inout ClientConfiguration) {
        configuration.connections = connections ?? configuration.connections
        if let bwlimit { configuration.bandwidth = BandwidthLimit(bwlimit.rates) }
    }
}
