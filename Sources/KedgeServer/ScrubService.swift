package import KedgeEngine
internal import KedgeModel
package import Logging
internal import ServiceLifecycle

/// Reads finished files back, one after the other, until the process stops.
package struct ScrubService: Service {
    /// How soon a new file is seen when nothing else is due.
    private static let idlePause = Duration.seconds(5)
    private static let tendInterval = Duration.seconds(60)
    private static let roundsBetweenLooks = 60
    /// Between two blobs: small ones cost transactions more than bytes, and the rate bounds only those.
    private static let pause = (alone: Duration.milliseconds(5), beside: Duration.milliseconds(50))

    private let engine: TransferEngine
    private let logger: Logger

    package init(engine: TransferEngine, logger: Logger) {
        self.engine = engine
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var nextTending = ContinuousClock.now
            var round = 0
            while !Task.isCancelled {
                do {
                    if ContinuousClock.now >= nextTending {
                        nextTending = .now + Self.tendInterval
                        if round % Self.roundsBetweenLooks == 0 {
                            try await engine.addMissingScrubs()
                        }
                        round += 1
                        try await engine.tendScrub()
                    }
                    let hadWork = try await engine.scrubNext()
                    let pause = engine.isTransferring ? Self.pause.beside : Self.pause.alone
                    try await Task.sleep(for: hadWork ? pause : Self.idlePause)
                } catch {
                    guard !Task.isCancelled else { return }
                    logger.error(
                        "scrub failed", metadata: ["error": "\(String(reflecting: error))"])
                    // The next round tries again; a store that is down must not stop the server.
                    do { try await Task.sleep(for: Self.tendInterval) } catch { return }
                }
            }
        }
    }
}
