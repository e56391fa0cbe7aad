package import KedgeEngine
internal import ServiceLifecycle

/// Renews a node's leases and handles change notifications of other nodes until the process stops.
/// Idle on a single node.
package struct FleetService: Service {
    private let engine: TransferEngine

    package init(engine: TransferEngine) { self.engine = engine }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            guard engine.isInFleet else {
                // A service that returns would end the group.
                try? await gracefulShutdown()
                return
            }
            await engine.runInFleet()
        }
    }
}
