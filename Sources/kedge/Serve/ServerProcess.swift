internal import Foundation
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeServer
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// One server process from start to a clean end: stores, engine, HTTP and maintenance.
struct ServerProcess {
    let configuration: ServiceConfiguration

    /// Runs until SIGTERM or SIGINT; a second signal ends the process at once. With TLS or an audit
    /// log in a file, SIGHUP reads the certificate and opens the file again; without both, it ends
    /// the process, too.
    func run() async throws {
        do {
            try await serve()
        } catch let failure as CommandFailure {
            throw logged(failure)
        }
    }

    /// Writes the message as a line of the log, if the log is for programs: a reader of JSON lines
    /// needs this one, too.
    private func logged(_ failure: CommandFailure) -> CommandFailure {
        guard configuration.logFormat == .json, let message = failure.message else {
            return failure
        }
        let text = message.hasPrefix("kedge: ") ? String(message.dropFirst(7)) : message
        Announcement.write(text, .critical, in: configuration)
        return CommandFailure(nil, exitStatus: failure.exitStatus)
    }

    private func serve() async throws {
        // Before it can be handled, SIGHUP must not end the process: files are read again later.
        if configuration.reloadsOnHangup { signal(SIGHUP, SIG_IGN) }
        ProcessMemory.shareArenas(processorCount: ProcessInfo.processInfo.activeProcessorCount)
        var configuration = configuration
        LoggingSystem.bootstrap { [configuration] label in
            LogLines(label: label, format: configuration.logFormat, level: configuration.logLevel)
        }
        let logger = Logger(label: "kedge")
        if configuration.durability == .off { Self.warnOfLostDurability(logger) }
        if let path = configuration.hashPath { try SHA256PairPath.select(path) }
        configuration.engine.hashStepLimits = .measured()
        logger.notice(
            "instructions for SHA-256 chosen",
            metadata: ["hash.path": "\(SHA256PairPath.current.rawValue)"])
        try await checked { try Self.applyDescriptorLimit(to: &configuration, logger) }
        try await checked { try ListenPolicy.check(configuration) }
        let stores = try await Stores.open(configuration)
        let engine = try stores.makeEngine(configuration.engine, logger: logger)
        try await engine.recover()
        let signingKeys = try await Self.signingKeys(of: stores, engine, configuration)
        let identities = IdentityService(configuration.openID, engine: engine, logger: logger)
        let http = try await checked {
            try KedgeService(
                engine: engine, configuration: configuration, tokens: stores.metadata,
                owners: stores.metadata, signingKeys: signingKeys, bearers: identities.verifier,
                logger: logger
            ) { [configuration] port in
                // For the user, and for a parent process that chose port 0.
                Announcement.write(
                    "serving on \(configuration.tls == nil ? "http" : "https")://"
                        + "\(configuration.host):\(port), "
                        + Self.places(configuration), .notice, in: configuration)
            }
        }
        let sweep = SweepService(
            engine: engine, interval: configuration.sweepInterval, logger: logger)
        var group = ServiceGroupConfiguration(
            services: [
                .init(service: sweep),
                .init(service: ScrubService(engine: engine, logger: logger)),
                .init(service: FleetService(engine: engine)),
                .init(service: identities),
                .init(service: http, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            logger: logger)
        if configuration.reloadsOnHangup {
            group.services.append(.init(service: HangupReload(service: http)))
        }
        group.maximumGracefulShutdownDuration = configuration.drainTimeout + .seconds(15)
        let services = ServiceGroup(configuration: group)
        // The group itself would handle only the first signal.
        let interruption = Interruption(Self.endingSignals(configuration)) { _ in
            // Ends by itself; `run` below waits for its effect.
            Task { await services.triggerGracefulShutdown() }
        }
        do {
            try await services.run()
        } catch let error as AddressInUse {
            throw CommandFailure("kedge: \(error)")
        }
        try await engine.close()
        // Kept to the end: the second signal must work even if a store hangs while it closes.
        withExtendedLifetime(interruption) {}
        logger.notice("stopped")
    }

    /// Opens the keys of links, and makes the first one; nil where every client is anonymous.
    private static func signingKeys(
        of stores: Stores, _ engine: TransferEngine, _ configuration: ServiceConfiguration
    ) async throws -> SigningKeys? {
        guard configuration.identityMode == .tokens else { return nil }
        let masters = try await checked {
            try await SigningKeys.masterKeys(
                in: configuration.masterKeyFile(), of: stores.metadata, at: engine.now,
                on: stores.pool)
        }
        let keys = SigningKeys(
            links: stores.metadata, tokens: stores.metadata, masters: masters,
            now: { engine.now })
        _ = try await keys.signer()
        return keys
    }

    private static func endingSignals(_ configuration: ServiceConfiguration) -> [Int32] {
        configuration.reloadsOnHangup ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
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

    /// Warns at any log level, because an operator must know of this setting.
    private static func warnOfLostDurability(_ logger: Logger) {
        var logger = logger
        logger.logLevel = .warning
        logger.warning(
            """
            durability is off, for measuring only: a power cut or system crash can lose \
            acknowledged data and damage the database
            """, metadata: ["durability": "off"])
    }

    /// Raises the soft limit of file descriptors and limits the connections accordingly. The usual
    /// soft limit of 1024 exists for programs that use select(2).
    ///
    /// - Throws: ``ConfigurationError`` if the descriptors cannot suffice for the connections.
    private static func applyDescriptorLimit(
        to configuration: inout ServiceConfiguration, _ logger: Logger
    ) throws {
        let budget = DescriptorBudget(
            descriptorCount: raisedDescriptorLimit(),
            writeCount: configuration.engine.maxConcurrentWrites)
        let connectionCount = try budget.connectionCount(asked: configuration.maxConnections)
        configuration.maxConnections = connectionCount
        configuration.engine.maxIdleStagingAreas = budget.idleStagingAreaCount
        logger.notice(
            "connections limited",
            metadata: [
                "limits.maxConnections": "\(connectionCount)",
                "descriptors": "\(budget.descriptorCount)",
            ])
    }

    /// Raises the limit of file descriptors; keeps the old one on failure.
    private static func raisedDescriptorLimit() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        // 1024 is the usual default.
        guard getrlimit(resource, &limit) == 0 else { return 1024 }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
        guard getrlimit(resource, &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }
}
