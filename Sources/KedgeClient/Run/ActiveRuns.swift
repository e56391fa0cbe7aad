internal import KedgeLocks
internal import KedgeModel

/// Runs of one client, and whether they are being stopped.
final class ActiveRuns: Sendable {
    private struct State {
        var meters: [TransferID: RateMeter] = [:]
        var isSuspending = false
    }
    private let state = Mutex(State())

    /// Claims a transfer for one run; false if it is already claimed or the client is stopping.
    func begin(_ id: TransferID, meter: RateMeter) -> Bool {
        state.withLock { state in
            guard !state.isSuspending, state.meters[id] == nil else { return false }
            state.meters[id] = meter
            return true
        }
    }

    func end(_ id: TransferID) { state.withLock { _ = $0.meters.removeValue(forKey: id) } }

    func bytesPerSecond(of id: TransferID) -> Double? {
        state.withLock { $0.meters[id] }?.bytesPerSecond
    }

    /// Number of bytes of a transfer of this process that were compared with those of the server.
    func comparedByteCount(of id: TransferID) -> Int64? {
        state.withLock { $0.meters[id] }?.comparedByteCount
    }

    func contains(_ id: TransferID) -> Bool { state.withLock { $0.meters[id] != nil } }

    var isSuspending: Bool { state.withLock { $0.isSuspending } }
    var isEmpty: Bool { state.withLock { $0.meters.isEmpty } }

    func suspend() { state.withLock { $0.isSuspending = true } }
}
