internal import Hummingbird
package import KedgeEngine
internal import KedgeModel

/// `/healthz`: the process responds. `/readyz`: the service can do its work.
package struct HealthRoutes: Sendable {
    let engine: TransferEngine
    let drain: DrainState
    var acceptance = AcceptState()
    /// Path of the tus endpoint.
    package var tusEndpoint = EndpointPath.tus

    package init(
        engine: TransferEngine,
        drain: DrainState,
        acceptance: AcceptState = AcceptState(),
        tusEndpoint: EndpointPath = EndpointPath.tus
    ) {
        self.engine = engine
        self.drain = drain
        self.acceptance = acceptance
        self.tusEndpoint = tusEndpoint
    }

    private struct Health: Encodable {
        var status: String
    }

    @Sendable func process(_ request: Request, _ context: KedgeRequestContext) -> Response {
        .json(Health(status: "ok"))
    }

    /// Stable values of `reason` for a server that is not ready.
    private enum Reason {
        static let stopping = "stopping"
        static let store = "store"
    }

    /// - Throws: `UNAVAILABLE` with a reason while a store does not respond, the disk accepts no
    ///   writes, connections are not accepted, or the server is stopping.
    @Sendable func ready(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        guard !drain.isDraining else {
            throw Self.unready(Reason.stopping, "The service is stopping.")
        }
        if let reason = acceptance.reason {
            throw Self.unready(reason.rawValue, "No connections can be accepted.")
        }
        do {
            try await engine.checkHealth()
        } catch {
            let cause = EngineError(translating: error)
            throw Self.unready(
                Reason.store, "A store does not answer or accepts no writes.",
                cause: cause.debugDescription)
        }
        return .json(
            ServerDescription(protocols: protocols, limits: engine.configuration.limits))
    }

    private var protocols: [SupportedProtocol] {
        let drafts = ResumableUploadVersion.allCases.compactMap(\.interopVersion)
        return [
            SupportedProtocol(name: "native", path: "/uploads/sessions"),
            SupportedProtocol(
                name: "tus", path: tusEndpoint.description, versions: [TusField.supportedVersion]),
            SupportedProtocol(
                name: "resumable-upload", path: "/files", versions: drafts.map(String.init)),
        ]
    }

    private static func unready(
        _ reason: String, _ detail: String, cause: String? = nil
    ) -> EngineError {
        var error = EngineError(.unavailable, detail, cause: cause)
        error.reason = reason
        return error
    }
}
