internal import HTTPTypes
package import Hummingbird
package import KedgeEngine
package import KedgeIdentity
internal import KedgeModel

/// All operations. The router is built from this list, and a test compares it with the contract in
/// `openapi/kedge.yaml`.
package struct RouteTable: Sendable {
    private(set) var routes: [Route]
    let metrics: ServiceMetrics
    private var methods: Set<String>
    private let tus: TusRoutes

    /// - Parameters:
    ///   - tusEndpoint: Path of the tus endpoint.
    ///   - publicAddress: Public address of the server.
    ///   - uploadTargets: Additional paths that accept uploads like `/files`.
    ///   - links: Signs links; nil where the service accepts none.
    ///   - linkPlacement: Which creators of uploads get links.
    ///   - metrics: The metrics of the service; nil makes some.
    ///   - administration: The stores that operators manage; nil for none.
    package init(
        engine: TransferEngine, health: HealthRoutes, tusEndpoint: EndpointPath = .tus,
        publicAddress: PublicAddress = .ofRequests, uploadTargets: [EndpointPath] = [],
        links: LinkAuthority? = nil, linkPlacement: LinkPlacement = .auto,
        metrics: ServiceMetrics? = nil, administration: Administration? = nil
    ) {
        let metrics = metrics ?? ServiceMetrics(engine: engine)
        self.metrics = metrics
        let sessionLinks = SessionLinks(authority: links, placement: linkPlacement)
        let sessions = SessionRoutes(engine: engine, links: sessionLinks, address: publicAddress)
        let files = FileRoutes(engine: engine, links: sessionLinks)
        let downloads = DownloadRoutes(engine: engine)
        let service = ServiceRoutes()
        let sessionPath = "/uploads/sessions/{sessionId}"
        tus = TusRoutes(
            engine: engine, endpoint: tusEndpoint, address: publicAddress, links: sessionLinks)
        let writing = Access.anyOf(.uploadsWrite, links: [.session])
        let reading = Access.anyOf(.filesRead, links: [.get])
        let linkRoutes = LinkRoutes(
            engine: engine, authority: links, address: publicAddress, tusEndpoint: tusEndpoint)
        let native = [
            Route(.get, "/", .public, service.describe),
            Route(.get, "/openapi.yaml", .public, service.contract),
            Route(.get, "/me", .any, MeRoutes(engine: engine).describe),
            Route(
                .post, "/uploads/sessions", .anyOf(.uploadsWrite, links: [.put]), sessions.create),
            Route(.get, "/uploads/sessions", .anyOf(.uploadsRead), sessions.list),
            Route(
                .get, sessionPath, .anyOf(.uploadsRead, .uploadsWrite, links: [.session]),
                sessions.status),
            Route(.delete, sessionPath, writing, sessions.cancel),
            Route(
                .put, "\(sessionPath)/chunks/{index}", writing, ChunkRoutes(engine: engine).put),
            Route(.post, "\(sessionPath)/finalize", writing, sessions.finalize),
            Route(.post, "/files", .anyOf(.uploadsWrite, links: [.put]), files.ingest),
            Route(.get, "/files", .anyOf(.filesList), files.list),
            Route(.get, "/files/{fileId}", reading, downloads.get),
            Route(.head, "/files/{fileId}", reading, downloads.head),
            Route(.delete, "/files/{fileId}", .anyOf(.filesDelete), files.delete),
            Route(.get, "/files/{fileId}/meta", reading, files.meta),
            Route(
                .get, "/files/{fileId}/chunks", .anyOf(.filesRead, links: [.get, .session]),
                files.chunks),
            Route(.post, "/links", .anyOf(.linksCreate), linkRoutes.create),
            Route(.delete, "/links/{linkId}", .anyOf(.linksCreate), linkRoutes.revoke),
            Route(
                .get, "/metrics", .anyOf(.metricsRead),
                MetricsRoutes(metrics: metrics.metrics).scrape),
            Route(.get, "/healthz", .public, health.process),
            Route(.get, "/readyz", .public, health.ready),
        ]
        let resumable = ResumableUploadRoutes(engine: engine, links: sessionLinks)
        let targets = uploadTargets.flatMap { target in
            [
                Route(
                    .post, target.description, .anyOf(.uploadsWrite, links: [.put]), files.ingest),
                Route(.options, target.description, .public, resumable.options),
            ]
        }
        let admin = AdminRoutes(administration)
        routes = native + admin.routes + resumable.routes + tus.routes + targets
        methods = Set(routes.map(\.method.rawValue))
    }

    /// The operations of the Unix socket for operators: those that manage the service, and its
    /// metrics.
    ///
    /// Not all of them: the principal there acts for the anonymous owner, and its uploads and
    /// files need the limits of a network connection.
    func forOperators() -> RouteTable {
        var table = self
        table.routes = routes.filter { route in
            guard case .anyOf(let scopes) = route.access.rule else {
                return route.access.rule == .anyPrincipal
            }
            return scopes.contains(.admin) || scopes.contains(.metricsRead)
        }
        table.methods = Set(table.routes.map(\.method.rawValue))
        return table
    }

    /// Returns a router that runs a route only for principals with its access.
    package func makeRouter(
        gate: RequestGate, authenticator: Authenticator = Authenticator(),
        rates: RequestRates = RequestRates(), audit: AuditTrail? = nil
    ) -> Router<KedgeRequestContext> {
        let router = Router(context: KedgeRequestContext.self)
        router.add(middleware: RequestMiddleware(routes: self, gate: gate, audit: audit))
        for route in routes {
            router.on(RouterPath(route.path), method: route.method) { request, context in
                let principal: Principal?
                do {
                    principal = try await authenticator.principal(
                        of: request, for: route.access, context)
                    if let principal {
                        try rates.admit(principal.owner, createsUpload: route.createsUpload)
                    }
                } catch let error as EngineError where error.code == .rateLimited {
                    throw rateError(error, request)
                }
                return try await route.handle(request, context.with(principal))
            }
        }
        return router
    }

    /// Returns the router behind ``MethodOverride``, which can change the method that the router
    /// matches.
    func makeResponder(
        gate: RequestGate, authenticator: Authenticator, rates: RequestRates, audit: AuditTrail?
    ) -> some HTTPResponder<KedgeRequestContext> {
        MethodOverride(
            inner: makeRouter(
                gate: gate, authenticator: authenticator, rates: rates, audit: audit
            ).buildResponder(),
            endpoint: tus.endpoint)
    }

    /// Returns the error of a rate as clients of the request's protocol expect it. A tus or IETF
    /// client that continues an upload gives up after 429.
    private func rateError(_ error: EngineError, _ request: Request) -> any Error {
        guard uploadProtocol(of: request.uri.path, request) != "native" else { return error }
        return TusErrors.translated(error)
    }

    /// Adds the fields that the protocol of the path requires in every response.
    func complete(_ response: inout Response, to request: Request) {
        tus.complete(&response, to: request)
    }

    /// Whether any operation has this method.
    func isKnown(_ method: String) -> Bool { methods.contains(method) }

    /// The upload protocol of a request, for metrics.
    func uploadProtocol(of path: String, _ request: Request) -> String {
        if tus.endpoint.contains(path) { return "tus" }
        let isResumable =
            path.hasPrefix("/uploads/resumable/") || ResumableUploadCall.isUsed(by: request.headers)
        return isResumable ? "resumable-upload" : "native"
    }

    /// The methods of a path, sorted; empty when nothing is at the path.
    func methods(at path: String) -> [String] {
        let segments = path.split(separator: "/")
        let matching = routes.filter { route in
            let pattern = route.path.split(separator: "/")
            return pattern.count == segments.count
                && zip(pattern, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
        return matching.map(\.method.rawValue).sorted()
    }

    /// Method, path and access of each operation, for tests of the contract.
    var operations: [String: Access] {
        Dictionary(
            routes.map { ("\($0.method.rawValue) \($0.path)", $0.access) },
            uniquingKeysWith: { first, _ in first })
    }
}

/// The operations of the service as `METHOD /path` text, without a running server.
package enum ServiceOperations {
    /// All operations that the router answers, with their access.
    package static func all(engine: TransferEngine) -> [String: Access] {
        RouteTable(
            engine: engine,
            health: HealthRoutes(engine: engine, drain: DrainState(), acceptance: AcceptState())
        )
        .operations
    }
}
