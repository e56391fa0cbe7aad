internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeJWT
internal import Logging
internal import ServiceLifecycle

/// Fetches the keys of OpenID providers until the process stops. Idle without providers.
struct IdentityService: Service {
    /// Nil without providers.
    let verifier: JWTVerifier?

    init(_ settings: OpenIDSettings?, engine: TransferEngine, logger: Logger) {
        verifier = settings.map { JWTVerifier($0, now: { engine.now }, logger: logger) }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let verifier else {
                // A service that returns would end the group.
                try? await gracefulShutdown()
                return
            }
            await verifier.run()
        }
    }
}
