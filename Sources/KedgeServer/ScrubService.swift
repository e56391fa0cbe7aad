package import KedgeEngine
package import Logging
internal import ServiceLifecycle

/// Reads stored files back, one after the other, until the process stops. Also runs the periodic
/// maintenance of the scrub.
package struct ScrubService: Service {
    /// Time after which a new file is noticed when nothing else is due.
    private static let idlePause = Duration.seconds(5)
    private static let tendInterval = Duration.seconds(60)
    private static let lookInterval = Duration.seconds(3600)
    /// Pause between two blobs, without and with running transfers. Small blobs cost transactions
    /// rather than bytes, and the byte rate does not limit transactions.
    private static let pause = (alone: Duration.milliseconds(5), beside: Duration.milliseconds(50))

    private let engine: TransferEngine
    private let logger: Logger

    package init(engine: TransferEngine, logger: Logger) {
        self.engine = engine
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withTaskGroup { group in
                group.addTask { await repeating(every: Self.tendInterval, engine.tendScrub) }
                group.addTask {
                    await repeating(every: Self.lookInterval) {
                        try await engine.addMissingScrubs()
                        try await engine.logScrub()
                    }
                }
                group.addTask { await scrub() }
            }
        }
    }

    private func scrub() async {
        while !Task.isCancelled {
            do {
                let hadWork = try await engine.scrubNext()
                let pause = engine.isTransferring ? Self.pause.beside : Self.pause.alone
                try await Task.sleep(for: hadWork ? pause : Self.idlePause)
            } catch {
                // The next round retries; a store that is down must not stop the server.
                guard await wait(after: error) else { return }
            }
        }
    }

    private func repeating(
        every interval: Duration, _ work: @Sendable () async throws -> Void
    ) async {
        while !Task.isCancelled {
            do {
                try await work()
                try await Task.sleep(for: interval)
            } catch {
                guard await wait(after: error) else { return }
            }
        }
    }

    /// - Returns: False when the process stops.
    private func wait(after error: any Error) async -> Bool {
        guard !Task.isCancelled else { return false }
        logger.error("scrub failed", metadata: ["error": "\(String(reflecting: error))"])
        do {
            try await Task.sleep(for: Self.tendInterval)
            return true
        } catch {
            return false
        }
    }
}
