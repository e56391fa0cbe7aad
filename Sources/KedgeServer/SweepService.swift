package import KedgeEngine
internal import KedgeModel
package import Logging
internal import ServiceLifecycle

/// Runs the engine's sweep regularly until the process stops.
package struct SweepService: Service {
    private let engine: TransferEngine
    private let interval: Duration
    private let logger: Logger

    package init(engine: TransferEngine, interval: Duration, logger: Logger) {
        self.engine = engine
        self.interval = interval
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await engine.sweep()
                    try await Task.sleep(for: interval)
                } catch is CancellationError {
                    return
                } catch {
                    logger.error(
                        "sweep failed",
                        metadata: ["error": "\(String(reflecting: error))"])
                    // The next round retries; a store that is down must not stop the server.
                    guard await Self.pause(interval) else { return }
                }
            }
        }
    }

    private static func pause(_ interval: Duration) async -> Bool {
        do {
            try await Task.sleep(for: interval)
            return true
        } catch {
            return false
        }
    }
}
