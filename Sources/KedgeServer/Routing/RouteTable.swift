internal import HTTPTypes
package import Hummingbird
package import KedgeEngine

/// All operations. The router is built from this list, and a test compares it with the contract in
/// `openapi/kedge.yaml`.
package struct RouteTable: Sendable {
    let routes: [Route]
    private let tus: TusRoutes

    /// - Parameters:
    ///   - tusEndpoint: Path of the tus endpoint.
    ///   - publicAddress: Public address of the server.
    ///   - uploadTargets: Additional paths that accept uploads like `/files`.
    package init(
        engine: TransferEngine, health: HealthRoutes, tusEndpoint: EndpointPath = .tus,
        publicAddress: PublicAddress = .ofRequests, uploadTargets: [EndpointPath] = []
    ) {
        let sessions = SessionRoutes(engine: engine)
        let files = FileRoutes(engine: engine)
        let downloads = DownloadRoutes(engine: engine)
        let service = ServiceRoutes()
        let sessionPath = "/uploads/sessions/{sessionId}"
        tus = TusRoutes(engine: engine, endpoint: tusEndpoint, address: publicAddress)
        let native = [
            Route(.get, "/", service.describe),
            Route(.get, "/openapi.yaml", service.contract),
            Route(.post, "/uploads/sessions", sessions.create),
            Route(.get, "/uploads/sessions", sessions.list),
            Route(.get, sessionPath, sessions.status),
            Route(.delete, sessionPath, sessions.cancel),
            Route(.put, "\(sessionPath)/chunks/{index}", ChunkRoutes(engine: engine).put),
            Route(.post, "\(sessionPath)/finalize", sessions.finalize),
            Route(.post, "/files", files.ingest),
            Route(.get, "/files", files.list),
            Route(.get, "/files/{fileId}", downloads.get),
            Route(.head, "/files/{fileId}", downloads.head),
            Route(.delete, "/files/{fileId}", files.delete),
            Route(.get, "/files/{fileId}/meta", files.meta),
            Route(.get, "/files/{fileId}/chunks", files.chunks),
            Route(.get, "/healthz", health.process),
            Route(.get, "/readyz", health.ready),
        ]
        let resumable = ResumableUploadRoutes(engine: engine)
        let targets = uploadTargets.flatMap { target in
            [
                Route(.post, target.description, files.ingest),
                Route(.options, target.description, resumable.options),
            ]
        }
        routes = native + resumable.routes + tus.routes + targets
    }

    package func makeRouter(gate: RequestGate) -> Router<KedgeRequestContext> {
        let router = Router(context: KedgeRequestContext.self)
        router.add(middleware: RequestMiddleware(routes: self, gate: gate))
        for route in routes {
            router.on(RouterPath(route.path), method: route.method, use: route.handle)
        }
        return router
    }

    /// Returns the router behind ``MethodOverride``, which can change the method that the router
    /// matches.
    func makeResponder(gate: RequestGate) -> some HTTPResponder<KedgeRequestContext> {
        MethodOverride(inner: makeRouter(gate: gate).buildResponder(), endpoint: tus.endpoint)
    }

    /// Adds the fields that the protocol of the path requires in every response.
    func complete(_ response: inout Response, to request: Request) {
        tus.complete(&response, to: request)
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

    /// Method and path of each operation, for the test that compares them with the contract.
    var operations: Set<String> { Set(routes.map { "\($0.method.rawValue) \($0.path)" }) }
}

/// The operations of the service as `METHOD /path` text, without a running server.
package enum ServiceOperations {
    /// All operations that the router answers.
    package static func all(engine: TransferEngine) -> Set<String> {
        RouteTable(
            engine: engine,
            health: HealthRoutes(engine: engine, drain: DrainState(), acceptance: AcceptState())
        )
        .operations
    }
}
