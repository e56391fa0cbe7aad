internal import KedgeModel

/// Why a run must stop although its worker has not ended.
enum RunSignal: Sendable {
    /// Somebody wants something.
    case control(ControlCommand)
    /// This client is ending.
    case suspend
    /// The lease, or the store, is gone.
    case lost(any Error)
}

/// Keeps a lease alive while its worker runs, and listens for the wishes of other processes.
struct LeaseWatcher: Sendable {
    private static let tick = Duration.milliseconds(100)
    private static let ticksPerLook = 2
    private static let ticksPerHeartbeat = 10

    let lease: Lease
    let store: TransferStore
    let runs: ActiveRuns
    /// Paces the loop that looks.
    let pause: @Sendable (Duration) async throws -> Void

    /// Returns when the run must stop; nil when the task was canceled because the worker ended.
    func watch() async -> RunSignal? {
        var tickCount = 0
        while !Task.isCancelled {
            if runs.isSuspending { return .suspend }
            do {
                if tickCount % Self.ticksPerHeartbeat == 0, tickCount > 0 {
                    try await store.heartbeat(lease)
                }
                if tickCount % Self.ticksPerLook == 0 {
                    let control = try await store.control(lease)
                    if control != .none { return .control(control) }
                }
                tickCount += 1
                try await pause(Self.tick)
            } catch is CancellationError {
                return nil
            } catch is LeaseLost {
                // The worker may just have given the lease back itself.
                return Task.isCancelled ? nil : .lost(LeaseLost())
            } catch {
                return .lost(error)
            }
        }
        return nil
    }
}
