internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// The leases on finalizes that outlive their request. A row records each of them, and one node
/// runs it. Another node takes over if that one dies.
final class FinalizeLeases: Sendable {
    private let queue: any FinalizeQueue
    private let clock: any WallClock
    private let nodeName: String
    private let duration: Duration
    /// Finalizes for which this node holds the lease, with the number of requests that use it.
    private let heldFinalizes = Mutex<[SessionID: Int]>([:])

    /// - Parameters:
    ///   - nodeName: The holder of the leases.
    ///   - duration: The time for which a lease lasts without renewal.
    init(queue: any FinalizeQueue, clock: any WallClock, nodeName: String, duration: Duration) {
        self.queue = queue
        self.clock = clock
        self.nodeName = nodeName
        self.duration = duration
    }

    /// Takes the lease on a session's finalize for the current request. After a success,
    /// ``endUse(of:)`` must follow.
    ///
    /// - Returns: False while another node has the lease.
    func acquireLease(on id: SessionID, _ expected: SHA256Digest?) async throws -> Bool {
        let isTaken = try await queue.takeFinalize(
            of: id, expecting: expected, lease: workLease)
        if isTaken { heldFinalizes.withLock { $0[id, default: 0] += 1 } }
        return isTaken
    }

    /// Ends the current request's use of the lease. The lease is not released but expires after its
    /// last use, so that a node takes over unfinished work.
    func endUse(of id: SessionID) {
        heldFinalizes.withLock { held in
            if let count = held[id] { held[id] = count > 1 ? count - 1 : nil }
        }
    }

    /// Renews the leases of finalizes under way.
    func renewFinalizes() async throws {
        for id in heldFinalizes.withLock({ Array($0.keys) }) {
            try await queue.renewFinalize(of: id, lease: workLease)
        }
    }

    /// The lease that this node takes or renews now.
    var workLease: WorkLease {
        let now = clock.now()
        return WorkLease(holder: nodeName, now: now, until: now.advanced(by: duration))
    }
}
