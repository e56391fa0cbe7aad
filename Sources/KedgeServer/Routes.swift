internal import HTTPTypes
internal import Hummingbird
package import KedgeEngine

/// One operation of the HTTP interface.
struct Route: Sendable {
    let method: HTTPRequest.Method
    /// Path with parameters in braces, as the contract writes it.
    let path: String
    let handle: @Sendable (Request, KedgeRequestContext) async throws -> Response

    init(
        _ method: HTTPRequest.Method, _ path: String,
        _ handle: @escaping @Sendable (Request, KedgeRequestContext) async throws -> Response
    ) {
        self.method = method
        self.path = path
        self.handle = handle
    }
}

/// All operations, in one place: the router is built from this list, and a test holds it against the
/// contract in `openapi/kedge.yaml`.
struct RouteTable: Sendable {
    let routes: [Route]

    init(engine: TransferEngine, health: HealthRoutes) {
        let sessions = SessionRoutes(engine: engine)
        let files = FileRoutes(engine: engine)
        let downloads = DownloadRoutes(engine: engine)
        let sessionPath = "/uploads/sessions/{sessionId}"
        routes = [
            Route(.post, "/uploads/sessions", sessions.create),
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
    }

    /// A router with every operation, and a 405 with `Allow` for every other method on its paths.
    func makeRouter() -> Router<KedgeRequestContext> {
        let router = Router(context: KedgeRequestContext.self)
        router.add(middleware: RequestMiddleware())
        let byPath = Dictionary(grouping: routes, by: \.path)
        let known: [HTTPRequest.Method] = [
            .get, .head, .post, .put, .delete, .patch, .options, .trace,
        ]
        for (path, routes) in byPath {
            for route in routes {
                router.on(RouterPath(path), method: route.method, use: route.handle)
            }
            let allowed = routes.map(\.method.rawValue).sorted().joined(separator: ", ")
            for method in known where !routes.contains(where: { $0.method == method }) {
                router.on(RouterPath(path), method: method) { _, context -> Response in
                    throw MethodNotAllowed(allowed: allowed)
                }
            }
        }
        return router
    }

    /// Method and path of each operation, for the test that holds them against the contract.
    var operations: Set<String> { Set(routes.map { "\($0.method.rawValue) \($0.path)" }) }
}

/// The address exists, the method does not.
struct MethodNotAllowed: Error {
    /// Value of the `Allow` header.
    let allowed: String
}

/// The operations of the service as `METHOD /path` text, without a running server.
package enum ServiceOperations {
    /// Every operation that the router answers.
    package static func all(engine: TransferEngine) -> Set<String> {
        RouteTable(engine: engine, health: HealthRoutes(engine: engine, drain: DrainState()))
            .operations
    }
}
