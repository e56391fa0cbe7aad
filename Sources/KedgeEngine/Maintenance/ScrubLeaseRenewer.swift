internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// Renews the lease on a blob while it is read, and decides when to stop.
final class ScrubLeaseRenewer: Sendable {
    private struct State {
        var renewAt: Timestamp
        var isInterrupted = false
    }

    private let context: EngineContext
    private let rows: any ScrubRecords
    private let target: ScrubTarget
    private let state: Mutex<State>

    init(context: EngineContext, target: ScrubTarget) {
        self.context = context
        rows = context.metadata
        self.target = target
        state = Mutex(State(renewAt: Self.next(context)))
    }

    private static func next(_ context: EngineContext) -> Timestamp {
        context.clock.now().advanced(by: context.configuration.scrubRenewal)
    }

    /// True when reading was stopped for more urgent work.
    var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

    /// Renews the lease if that is due, and decides whether reading continues.
    ///
    /// - Parameters:
    ///   - checkedByteCount: Recorded, so that the next scrub continues there.
    ///   - isUrgent: Whether the work must not be interrupted for other work.
    /// - Returns: False when reading must stop.
    func proceed(checked checkedByteCount: Int64, untilDone isUrgent: Bool = false) async throws
        -> Bool
    {
        guard context.clock.now() >= state.withLock({ $0.renewAt }) else { return true }
        state.withLock { $0.renewAt = Self.next(context) }
        guard
            try await rows.renewScrub(
                target, lease: context.scrubLease, checkedByteCount: checkedByteCount)
        else { return false }
        guard !target.isNew, !isUrgent else { return true }
        guard try await rows.scrubBacklog().newCount > 0 else { return true }
        state.withLock { $0.isInterrupted = true }
        return false
    }
}
