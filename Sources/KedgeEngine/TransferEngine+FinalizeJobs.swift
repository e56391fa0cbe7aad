internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel
internal import Logging

// Finalizes that outlive their request. A row records each of them, and one node runs it. Another
// node takes over if that one dies.
extension TransferEngine {
    /// Takes the lease on a session's finalize for the current request. After a success,
    /// ``releaseLease(of:)`` must follow.
    ///
    /// - Returns: False while another node has the lease.
    func takeWork(on id: SessionID, _ expected: SHA256Digest?) async throws -> Bool {
        let isTaken = try await context.metadata.takeFinalize(
            of: id, expecting: expected, lease: workLease)
        if isTaken { heldFinalizes.withLock { $0[id, default: 0] += 1 } }
        return isTaken
    }

    /// Ends the current request's use of the lease. The lease is not released but expires after its
    /// last use, so that a node takes over unfinished work.
    func releaseLease(of id: SessionID) {
        heldFinalizes.withLock { held in
            if let count = held[id] { held[id] = count > 1 ? count - 1 : nil }
        }
    }

    /// Renews the leases of finalizes under way.
    func renewFinalizes() async throws {
        for id in heldFinalizes.withLock({ Array($0.keys) }) {
            try await context.metadata.renewFinalize(of: id, lease: workLease)
        }
    }

    /// The lease that this node takes or renews now.
    var workLease: WorkLease {
        let now = context.clock.now()
        return WorkLease(
            holder: context.nodeName, now: now,
            until: now.advanced(by: configuration.finalizeLease))
    }

    /// Continues a finalize whose request was answered "pending". Each round renews the lease. The
    /// result is a file, or an error that the client gets when it asks again.
    func finishInBackground(_ id: SessionID, owner: OwnerID, _ expected: SHA256Digest?) {
        backgroundFinalizes.start(id) { [self] in
            do {
                while !Task.isCancelled, !isEnding {
                    guard case .pending = try await finalize(id, owner: owner, expecting: expected)
                    else { return }
                    // While another node has the lease, the call returns at once.
                    try await context.timer.sleep(for: .seconds(1))
                }
            } catch is CancellationError {
                return
            } catch {
                context.logger.warning(
                    "a promised finalize stopped",
                    metadata: [
                        "session.id": "\(id)", "error": "\(String(reflecting: error))",
                    ])
            }
        }
    }

    /// Takes over finalizes whose nodes no longer renew the lease.
    func takeOverFinalizes() async throws {
        let jobs = try await context.metadata.takeAbandonedFinalizes(lease: workLease, limit: 10)
        for job in jobs where !isEnding {
            if job.record.parts == nil {
                finishInBackground(job.record.id, owner: job.record.owner, job.expected)
            } else {
                await resumeConcatenating(job.record)
            }
        }
    }
}
