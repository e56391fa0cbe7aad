internal import Foundation
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import KedgeServer
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// One server process: stores, engine, HTTP and housekeeping, from start to a clean end.
struct ServerProcess {
    let configuration: ServiceConfiguration

    /// Runs until SIGTERM or SIGINT; a second one ends the process at once.
    func run() async throws {
        let configuration = configuration
        LoggingSystem.bootstrap { label in
            LogLines(label: label, format: configuration.logFormat, level: configuration.logLevel)
        }
        let logger = Logger(label: "kedge")
        if configuration.durability == .off { Self.warnOfLostDurability(logger) }
        Self.raiseDescriptorLimit()
        let stores = try await Stores.open(configuration)
        let engine = try stores.makeEngine(configuration.engine, logger: logger)
        try await engine.recover()
        let http = try await checked {
            try KedgeService(engine: engine, configuration: configuration, logger: logger) { port in
                // One line for people and for whoever started the process with port 0.
                StandardError.write(
                    "kedge: serving on http://\(configuration.host):\(port), "
                        + "\(printable(Self.places(configuration)))\n")
            }
        }
        let sweep = SweepService(
            engine: engine, interval: configuration.sweepInterval, logger: logger)
        var group = ServiceGroupConfiguration(
            services: [
                .init(service: sweep),
                .init(service: ScrubService(engine: engine, logger: logger)),
                .init(service: FleetService(engine: engine)),
                .init(service: http, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            logger: logger)
        group.maximumGracefulShutdownDuration = configuration.drainTimeout + .seconds(15)
        let services = ServiceGroup(configuration: group)
        // The group would listen to the first signal alone.
        let interruption = Interruption {
            // Ends by itself; `run` below is what waits for its effect.
            Task { await services.triggerGracefulShutdown() }
        }
        try await services.run()
        try await engine.close()
        // To the very end: a store that hangs while it closes must not take the second signal away.
        withExtendedLifetime(interruption) {}
        logger.notice("stopped")
    }

    private static func places(_ configuration: ServiceConfiguration) -> String {
        let directory = "data in \(configuration.dataDirectory)"
        let bytes: String
        switch configuration.bytes {
        case .disk: bytes = directory
        case .s3(let url): bytes = "bytes in \(url)"
        }
        switch configuration.metadata {
        case .sqlite where configuration.bytes == .disk: return directory
        case .sqlite: return "rows in \(configuration.dataDirectory), \(bytes)"
        case .postgres: return "rows in \(configuration.metadata), \(bytes)"
        }
    }

    /// Whatever the log level, because nobody may serve like this without knowing.
    private static func warnOfLostDurability(_ logger: Logger) {
        var logger = logger
        logger.logLevel = .warning
        logger.warning(
            """
            durability is off: nothing is synced, so a power cut or a crash of the system can lose \
            acknowledged data and damage the database; this is for measuring only
            """, metadata: ["durability": "off"])
    }

    /// Connections, staging areas and open files each take a descriptor; the usual soft limit of 1024
    /// is for programs that use select(2). Where the limit cannot be raised, the old one holds.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
