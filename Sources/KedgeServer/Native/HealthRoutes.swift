internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// `/healthz`: the process answers. `/readyz`: it can do its work.
struct HealthRoutes: Sendable {
    let engine: TransferEngine
    let drain: DrainState

    private struct Health: Encodable {
        var status: String
    }

    @Sendable func process(_ request: Request, _ context: KedgeRequestContext) -> Response {
        .json(Health(status: "ok"))
    }

    /// - Throws: `UNAVAILABLE` while a store does not answer, the disk takes no writes, or the server
    ///   is stopping.
    @Sendable func ready(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        guard !drain.isDraining else {
            throw EngineError(.unavailable, "The service is stopping.")
        }
        do {
            try await engine.checkHealth()
        } catch {
            let cause = EngineError(translating: error)
            throw EngineError(
                .unavailable, "A store does not answer or takes no writes.",
                cause: cause.debugDescription)
        }
        return .json(Health(status: "ready"))
    }
}
