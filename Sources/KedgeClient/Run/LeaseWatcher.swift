internal import KedgeModel

/// Renews a lease while its worker runs, and polls for commands.
struct LeaseWatcher: Sendable {
    private static let tick = Duration.milliseconds(100)
    private static let ticksPerLook = 2
    private static let ticksPerHeartbeat = 10

    let lease: Lease
    let store: TransferStore
    let runs: ActiveRuns
    /// Paces the polling loop.
    let pause: @Sendable (Duration) async throws -> Void

    /// Returns when the run must stop; nil if the task was canceled because the worker ended.
    func watch() async -> RunEnd? {
        var tickCount = 0
        while !Task.isCancelled {
            if runs.isSuspending { return .suspended }
            do {
                if tickCount % Self.ticksPerHeartbeat == 0, tickCount > 0 {
                    try await store.heartbeat(lease)
                }
                if tickCount % Self.ticksPerLook == 0 {
                    if let command = try await store.command(lease) { return .command(command) }
                }
                tickCount += 1
                try await pause(Self.tick)
            } catch is CancellationError {
                return nil
            } catch RunInterruption.leaseLost {
                // The worker may have just released the lease itself.
                return Task.isCancelled ? nil : .lost(RunInterruption.leaseLost)
            } catch {
                return .lost(error)
            }
        }
        return nil
    }
}
