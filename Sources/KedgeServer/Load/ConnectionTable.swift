internal import KedgeEngine
internal import KedgeLocks
internal import KedgeModel
internal import Logging
internal import NIOCore

/// The open connections and the rates of their readers. Carries out the decisions of
/// ``ReaderShares``.
final class ConnectionTable: Sendable {
    /// Interval between checks for readers to disconnect.
    static let patrolInterval: Duration = .seconds(1)

    private struct State {
        var shares: ReaderShares
        var lastID = 0
        var openCount = 0
        var closedCount = 0
        var isGivingBack = false
        /// Channels with slow readers.
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

    /// Number of open connections.
    var openCount: Int { state.withLock { $0.openCount } }

    func opened(by address: ClientAddress) -> ReaderShares.ConnectionID {
        state.withLock { state in
            state.lastID += 1
            state.openCount += 1
            state.shares.opened(state.lastID, by: address)
            return state.lastID
        }
    }

    func used(_ id: ReaderShares.ConnectionID, by address: ClientAddress) {
        state.withLock { $0.shares.used(id, by: address) }
    }

    func closed(_ id: ReaderShares.ConnectionID) {
        state.withLock { state in
            state.openCount -= 1
            state.closedCount += 1
            state.shares.closed(id)
            state.channels[id] = nil
        }
    }

    /// - Parameter bytesPerSecond: The reader's rate; nil when no response is being read.
    func read(_ id: ReaderShares.ConnectionID, bytesPerSecond: Int?, over channel: any Channel) {
        state.withLock { state in
            let isSlow = state.shares.read(id, bytesPerSecond: bytesPerSecond)
            state.channels[id] = isSlow ? channel : nil
        }
    }

    /// Returns and resets the number of closed connections.
    private func takeClosedCount() -> Int {
        state.withLock { state in
            defer { state.closedCount = 0 }
            return state.closedCount
        }
    }

    /// Disconnects slow readers while connections are scarce. Releases memory after many
    /// connections have closed. Runs until the task is cancelled.
    func patrol(releasing release: @escaping @Sendable () async -> Void) async {
        var schedule = MemoryReleaseSchedule()
        while !Task.isCancelled {
            cutSlowReaders()
            if schedule.passed(closed: takeClosedCount()) { begin(release) }
            do {
                try await Task.sleep(for: Self.patrolInterval)
            } catch {
                return
            }
        }
    }

    /// Starts the work unless it is running already. Does not wait for it, because its thread may
    /// be blocked by a disk that hangs.
    private func begin(_ release: @escaping @Sendable () async -> Void) {
        let isFree = state.withLock { state in
            defer { state.isGivingBack = true }
            return !state.isGivingBack
        }
        guard isFree else { return }
        // Not awaited: ends by itself when its calls return.
        Task { [self] in
            await release()
            state.withLock { $0.isGivingBack = false }
        }
    }

    private func cutSlowReaders() {
        let (channels, count) = state.withLock { state in
            let victims = state.shares.victims()
            // Prevents a second selection before these channels have closed.
            for id in victims { state.shares.read(id, bytesPerSecond: nil) }
            return (
                victims.compactMap { state.channels.removeValue(forKey: $0) }, state.shares.count
            )
        }
        guard !channels.isEmpty else { return }
        for channel in channels { channel.close(promise: nil) }
        logger.notice(
            "slow readers disconnected",
            metadata: ["readers": "\(channels.count)", "connections": "\(count)"])
    }
}
