internal import KedgeEngine
internal import KedgeLocks
internal import KedgeModel
internal import Logging
internal import NIOCore

/// The connections that are open, and what their readers take: performs what ``ReaderShares`` decides.
final class ConnectionTable: Sendable {
    /// How often it is looked whether readers are to be cut.
    static let patrolInterval: Duration = .seconds(1)

    private struct State {
        var shares: ReaderShares
        var lastID = 0
        var closedCount = 0
        var isGivingBack = false
        /// Those whose readers are slow.
        var channels: [ReaderShares.ConnectionID: any Channel] = [:]
    }

    private let state: Mutex<State>
    private let logger: Logger

    init(maxConnectionCount: Int, minBytesPerSecond: Int, logger: Logger) {
        state = Mutex(
            State(
                shares: ReaderShares(
                    maxConnectionCount: maxConnectionCount, minBytesPerSecond: minBytesPerSecond)))
        self.logger = logger
    }

    func opened(by address: ClientAddress) -> ReaderShares.ConnectionID {
        state.withLock { state in
            state.lastID += 1
            state.shares.opened(state.lastID, by: address)
            return state.lastID
        }
    }

    func used(_ id: ReaderShares.ConnectionID, by address: ClientAddress) {
        state.withLock { $0.shares.used(id, by: address) }
    }

    func closed(_ id: ReaderShares.ConnectionID) {
        state.withLock { state in
            state.closedCount += 1
            state.shares.closed(id)
            state.channels[id] = nil
        }
    }

    /// - Parameter bytesPerSecond: How fast an answer was read; nil when none is being read any more.
    func read(_ id: ReaderShares.ConnectionID, bytesPerSecond: Int?, over channel: any Channel) {
        state.withLock { state in
            let isSlow = state.shares.read(id, bytesPerSecond: bytesPerSecond)
            state.channels[id] = isSlow ? channel : nil
        }
    }

    /// Connections that were closed since the last call.
    private func takeClosedCount() -> Int {
        state.withLock { state in
            defer { state.closedCount = 0 }
            return state.closedCount
        }
    }

    /// Cuts slow readers while connections are scarce, and has memory given back after many connections have
    /// gone, until the task is cancelled.
    func patrol(givingBack giveBack: @escaping @Sendable () async -> Void) async {
        var upkeep = MemoryUpkeep()
        while !Task.isCancelled {
            cutSlowReaders()
            if upkeep.passed(closed: takeClosedCount()) { begin(giveBack) }
            do {
                try await Task.sleep(for: Self.patrolInterval)
            } catch {
                return
            }
        }
    }

    /// Runs the work unless it runs already. Nobody waits for it: its thread may be behind calls to a disk that
    /// hangs.
    private func begin(_ giveBack: @escaping @Sendable () async -> Void) {
        let isFree = state.withLock { state in
            defer { state.isGivingBack = true }
            return !state.isGivingBack
        }
        guard isFree else { return }
        // Ends by itself, once its calls return.
        Task { [self] in
            await giveBack()
            state.withLock { $0.isGivingBack = false }
        }
    }

    private func cutSlowReaders() {
        let (channels, count) = state.withLock { state in
            let victims = state.shares.victims()
            // Asked once: those are gone in a moment.
            for id in victims { state.shares.read(id, bytesPerSecond: nil) }
            return (
                victims.compactMap { state.channels.removeValue(forKey: $0) }, state.shares.count
            )
        }
        guard !channels.isEmpty else { return }
        for channel in channels { channel.close(promise: nil) }
        logger.notice(
            "slow readers cut",
            metadata: ["readers": "\(channels.count)", "connections": "\(count)"])
    }
}
