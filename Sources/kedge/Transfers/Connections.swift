internal import ArgumentParser
internal import KedgeClient

/// The limit of concurrent connections of one transfer.
struct Connections: ParsableArguments {
    @Option(help: "Concurrent connections of one transfer, 1 to 32 (default: up to 4).")
    var connections: Int?

    func validate() throws {
        guard (1...32).contains(connections ?? 1) else {
            throw ValidationError("--connections must be 1 to 32.")
        }
    }

    func apply(to configuration: inout ClientConfiguration) {
        configuration.connections = connections
    }
}
