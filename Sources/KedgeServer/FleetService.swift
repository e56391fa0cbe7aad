package import KedgeEngine
internal import ServiceLifecycle

/// Keeps a node's leases alive and hears of the others until the process stops; idle where there are none.
package struct FleetService: Service {
    private let engine: TransferEngine

    package init(engine: TransferEngine) { self.engine = engine }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            guard engine.isInFleet else {
                // A service that returned would end the group.
                try? await gracefulShutdown()
                return
            }
            await engine.runInFleet()
        }
    }
}
