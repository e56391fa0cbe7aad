internal import Hummingbird
internal import HummingbirdCore
package import KedgeEngine
package import KedgeIdentity
internal import KedgeModel
internal import KedgeTLS
package import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// The HTTP server of an engine. Runs until a graceful shutdown, then drains.
///
/// During shutdown it accepts no new connections, and running requests get the drain timeout. After
/// that, it stops uploads and saves their bytes as partials, and aborts downloads. Clients can
/// resume both with the next process.
package struct KedgeService: Service {
    private let engine: TransferEngine
    private let configuration: ServiceConfiguration
    private let logger: Logger
    private let drain = DrainState()
    private let acceptance = AcceptState()
    private let metrics: ServiceMetrics
    /// Nil where every client is anonymous.
    private let tokens: TokenLookup?
    private let bearers: (any BearerVerifier)?
    /// Nil where the service accepts no links.
    private let links: LinkAuthority?
    /// Nil where no proxy states identities.
    private let proxyIdentity: ProxyIdentity?
    /// Nil without a store of owners.
    private let blocks: OwnerBlocks?
    /// Nil without an audit log.
    private let audit: AuditLog?
    /// Nil for HTTP without TLS.
    private let certificate: CertificateWatch?
    /// Nil without the stores of tokens and owners.
    private let administration: Administration?
    private let onRunning: @Sendable (Int) async -> Void

    /// - Parameters:
    ///   - tokens: The store of the API tokens, which operators manage; needed with
    ///     ``IdentityMode/tokens``.
    ///   - owners: The store of the owners, which operators manage and block.
    ///   - signingKeys: The keys of links; nil for a service without links.
    ///   - bearers: Verifies the tokens of OpenID providers; nil to refuse them.
    ///   - onRunning: Called with the port once the server accepts connections.
    /// - Throws: The errors of ``ListenPolicy``.
    package init(
        engine: TransferEngine, configuration: ServiceConfiguration,
        tokens: (any TokenStore)? = nil, owners: (any OwnerStore)? = nil,
        signingKeys: SigningKeys? = nil, bearers: (any BearerVerifier)? = nil, logger: Logger,
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) throws {
        try ListenPolicy.check(configuration)
        self.engine = engine
        self.configuration = configuration
        self.bearers = bearers
        self.logger = logger
        metrics = ServiceMetrics(engine: engine)
        if let bearers { metrics.observe(bearers) }
        switch configuration.identityMode {
        case .anonymous:
            self.tokens = nil
            // Each request has every right already, and ignores its link.
            links = nil
        case .tokens:
            guard let tokens else { preconditionFailure("tokens need their store") }
            self.tokens = TokenLookup(store: tokens, now: { engine.now }, logger: logger)
            links = signingKeys.map { keys in
                LinkAuthority(
                    keys: keys, maxLifetime: configuration.maxLinkLifetime, now: { engine.now })
            }
        }
        proxyIdentity = try configuration.proxyIdentity.map { settings in
            ProxyIdentity(
                settings, secret: try settings.readSecret(), proxies: configuration.trustedProxies)
        }
        audit = try Self.openAudit(configuration.audit, logger)
        certificate = try Self.watchedCertificate(configuration, metrics, logger)
        let blocks = owners.map { OwnerBlocks(store: $0, now: { engine.now }) }
        let lookup = self.tokens
        self.blocks = blocks
        if let tokens, let owners {
            administration = Administration(
                tokens: tokens, owners: owners,
                onChange: { change in
                    switch change {
                    case .token(let id):
                        lookup?.forget(id)
                        signingKeys?.forgetTokens()
                    case .owner(let owner): blocks?.forget(owner)
                    }
                }, now: { engine.now })
        } else {
            administration = nil
        }
        self.onRunning = onRunning
    }

    private static func watchedCertificate(
        _ configuration: ServiceConfiguration, _ metrics: ServiceMetrics, _ logger: Logger
    ) throws -> CertificateWatch? {
        guard let tls = configuration.tls else { return nil }
        do throws(CertificateFailure) {
            return CertificateWatch(
                certificates: try CertificateReloader(tls), metrics: metrics,
                interval: configuration.certificateCheckInterval, logger: logger)
        } catch {
            throw ConfigurationError(error.description)
        }
    }

    private static func openAudit(
        _ destination: AuditDestination, _ logger: Logger
    ) throws -> AuditLog? {
        switch destination {
        case .off: return nil
        case .standardError: return try AuditLog(path: nil, logger: logger)
        case .file(let path):
            do {
                return try AuditLog(path: path, logger: logger)
            } catch {
                throw ConfigurationError("log.audit: \(path) cannot be opened: \(error).")
            }
        }
    }

    private var auditTrail: AuditTrail? {
        audit.map { [engine] in AuditTrail($0, now: { engine.now }) }
    }

    /// Reads the certificate and its key again, for new connections. A bad pair is logged, and the
    /// one before stays in use. Does nothing without TLS.
    package func reloadCertificate() async { await certificate?.reload() }

    /// Opens the file of the audit log again, after a program that rotates logs has renamed it.
    package func reopenAuditLog() async { await audit?.reopen() }

    package func run() async throws {
        if tokens == nil {
            // With tokens, a page has no right of its own.
            if configuration.cors.isOpen { warnOfOpenPages() }
            if configuration.allowedHosts.contains("*") { warnOfAnyHost() }
        }
        if let warning = ListenPolicy.hostWarning(of: configuration) {
            logger.warning("\(warning)", metadata: ["host": "\(configuration.host)"])
        }
        let timer = DrainTimer(
            engine: engine, drain: drain, timeout: configuration.drainTimeout, logger: logger)
        // Users of an OpenID provider or a proxy need no token of this service.
        if let tokens, bearers == nil, proxyIdentity == nil { await warn(of: tokens) }
        do {
            try await withGracefulShutdownHandler {
                try await serve()
            } onGracefulShutdown: {
                timer.start()
            }
        } catch {
            await finish()
            throw error
        }
        timer.cancel()
        // The stores may be closed from here on.
        await finish()
    }

    /// Waits for the work that requests have left behind.
    private func finish() async {
        await tokens?.finish()
        await audit?.finish()
    }

    private func serve() async throws {
        let table = ConnectionTable(
            maxConnectionCount: maxConnectionCount,
            minBytesPerSecond: configuration.minAnswerBytesPerSecond, logger: logger)
        // A task's result is true when the service is over.
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { [engine] in
                await table.patrol { await engine.releaseMemory() }
                return false
            }
            metrics.observe(table)
            if let certificate {
                group.addTask {
                    await certificate.run()
                    return false
                }
            }
            if let administration {
                group.addTask {
                    await administration.followChanges()
                    return false
                }
            }
            if let address = configuration.metricsAddress {
                let listener = MetricsListener(
                    address: address, metrics: metrics.metrics, logger: logger)
                group.addTask {
                    try await listener.run()
                    return false
                }
            }
            let routes = routes()
            await startAdminListener(routes, in: &group)
            group.addTask { [self] in
                do {
                    try await application(routes, table).run()
                } catch let error as IOError where error.errnoCode == EADDRINUSE {
                    throw AddressInUse(host: configuration.host, port: configuration.port)
                }
                return true
            }
            while try await group.next() == false {}
            group.cancelAll()
        }
    }

    private var maxConnectionCount: Int {
        configuration.maxConnections ?? DescriptorBudget.usualConnectionCount
    }

    /// Warns that every page has all rights, because clients are not authenticated.
    private func warnOfOpenPages() {
        logger.warning(
            """
            cors.allowedOrigins is *: any page opened in a browser on this machine can list, read \
            and delete all files and uploads
            """, metadata: ["cors.allowedOrigins": "*"])
    }

    private func warnOfAnyHost() {
        logger.warning(
            """
            allowedHosts is *: any page opened in a browser on this machine can list, read and \
            delete all files and uploads, by DNS rebinding
            """, metadata: ["allowedHosts": "*"])
    }

    /// Warns if every request will be refused.
    private func warn(of tokens: TokenLookup) async {
        do {
            guard try await !tokens.hasValidToken() else { return }
            // With PostgreSQL, the command needs the address of the database.
            let place =
                configuration.metadata == .sqlite
                ? "--data \(configuration.dataDirectory)" : "--config FILE"
            logger.warning(
                """
                identity.mode is tokens and there is no valid token: every request will be \
                refused. Make one with: kedge token create NAME --owner OWNER --scopes user \
                \(place)
                """, metadata: ["identity.mode": "tokens"])
        } catch {
            // Requests will show the same failure of the store.
            logger.warning(
                "listing tokens failed", metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func routes() -> RouteTable {
        RouteTable(
            engine: engine,
            health: HealthRoutes(
                engine: engine, drain: drain, acceptance: acceptance,
                tusEndpoint: configuration.tusEndpoint),
            tusEndpoint: configuration.tusEndpoint, publicAddress: publicAddress,
            uploadTargets: configuration.uploadTargets, links: links,
            linkPlacement: configuration.linkPlacement, metrics: metrics,
            administration: administration)
    }

    /// Starts the socket for operators, and returns once it accepts connections or cannot.
    private func startAdminListener(
        _ routes: RouteTable, in group: inout ThrowingTaskGroup<Bool, any Error>
    ) async {
        // Without a data directory, there is no place for it.
        guard administration != nil, configuration.usesDataDirectory else { return }
        let listener = AdminListener(
            directory: configuration.dataDirectory, routes: routes.forOperators(),
            audit: auditTrail, logger: logger)
        let (starting, start) = AsyncStream.makeStream(of: Void.self)
        group.addTask {
            await listener.run { start.finish() }
            start.finish()
            return false
        }
        for await _ in starting {}
    }

    private func application(_ routes: RouteTable, _ table: ConnectionTable) -> some Service {
        let rates = RequestRates(configuration.rates, proxies: configuration.trustedProxies)
        let responder = routes.makeResponder(
            gate: RequestGate(
                allowedHosts: configuration.allowedHosts, cors: configuration.cors,
                proxies: configuration.trustedProxies, isSecure: configuration.tls != nil,
                acceptsLinks: links != nil),
            authenticator: Authenticator(
                credentials: credentials, blocks: blocks, rates: rates,
                onChecked: { [metrics] in metrics.authenticated($0) }),
            rates: rates, audit: auditTrail)
        let settings = HTTPConnection.Settings(
            idleTimeout: configuration.idleTimeout,
            minBodyBytesPerSecond: configuration.minBodyBytesPerSecond,
            lingerByteCount: Int(clamping: configuration.engine.chunkSizes.upperBound),
            table: table, proxies: configuration.trustedProxies,
            readerWindow: configuration.answerWindow, interim: configuration.interim, drain: drain,
            tls: tls, logger: logger)
        return Application(
            responder: responder,
            server: HTTPServerBuilder { HTTPConnection(responder: $0, settings: settings) },
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.host, port: configuration.port),
                serverName: "kedge",
                availableConnectionsDelegate: MaximumAvailableConnections(maxConnectionCount)),
            onServerRunning: { [onRunning, acceptance, logger] channel in
                await Self.watch(channel, acceptance, logger)
                await onRunning(channel.localAddress?.port ?? 0)
            },
            logger: logger)
    }

    /// Nil where every client is anonymous.
    private var credentials: CredentialVerifier? {
        tokens.map { tokens in
            CredentialVerifier(
                tokens: tokens, links: links.map { LinkLookup(authority: $0) }, bearers: bearers,
                proxy: proxyIdentity)
        }
    }

    private var publicAddress: PublicAddress {
        var address = configuration.publicAddress
        address.isSecure = configuration.tls != nil
        return address
    }

    private var tls: TLSServer? {
        certificate.map { certificate in
            TLSServer(
                certificate.certificates, handshakeTimeout: configuration.handshakeTimeout,
                logger: logger, onHandshake: { [metrics] in metrics.handshakeEnded($0) })
        }
    }

    /// Adds ``AcceptPause`` to the listening channel, which Hummingbird creates.
    private static func watch(
        _ channel: any Channel, _ acceptance: AcceptState, _ logger: Logger
    ) async {
        do {
            try await channel.eventLoop.submit {
                try channel.pipeline.syncOperations.addHandler(
                    AcceptPause(acceptance, logger: logger), position: .first)
            }.get()
        } catch {
            // A closed channel accepts no connections.
            logger.debug("server stopped during startup", metadata: ["error": "\(error)"])
        }
    }
}

/// Ends a drain after its timeout.
private final class DrainTimer: Sendable {
    private let engine: TransferEngine
    private let drain: DrainState
    private let timeout: Duration
    private let logger: Logger
    private let task = CancellableTask()

    init(engine: TransferEngine, drain: DrainState, timeout: Duration, logger: Logger) {
        self.engine = engine
        self.drain = drain
        self.timeout = timeout
        self.logger = logger
    }

    func start() {
        drain.beginDraining()
        logger.notice(
            "stopping", metadata: ["writes": "\(engine.activeWriteCount)", "drain": "\(timeout)"])
        task.set(
            // Cancelled by `cancel()` if the server has drained before.
            Task { [engine, timeout, logger, drain] in
                try await Task.sleep(for: timeout)
                logger.notice(
                    "drain timeout reached", metadata: ["writes": "\(engine.activeWriteCount)"])
                drain.beginEnding()
                await engine.interruptWriters()
            })
    }

    func cancel() { task.cancel() }
}
