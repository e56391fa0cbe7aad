internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel
internal import Logging

// Finalizes that take longer than their request: promised with a row, done by one node, whoever dies.
extension TransferEngine {
    /// Takes the work of finalizing a session for the request under way; ``letGo(of:)`` must follow.
    ///
    /// - Returns: False while another node has it.
    func takeWork(on id: SessionID, _ expected: SHA256Digest?) async throws -> Bool {
        let isTaken = try await parts.metadata.takeFinalize(
            of: id, expecting: expected, lease: workLease)
        if isTaken { heldFinalizes.withLock { $0[id, default: 0] += 1 } }
        return isTaken
    }

    /// The request under way needs the lease no more. It is not given back: if the work is not done, somebody
    /// must go on with it when nobody renews.
    func letGo(of id: SessionID) {
        heldFinalizes.withLock { held in
            if let count = held[id] { held[id] = count > 1 ? count - 1 : nil }
        }
    }

    /// Keeps the leases of work that takes long.
    func renewFinalizes() async throws {
        for id in heldFinalizes.withLock({ Array($0.keys) }) {
            try await parts.metadata.renewFinalize(of: id, lease: workLease)
        }
    }

    /// What this node says of work that it has or takes.
    var workLease: WorkLease {
        let now = parts.clock.now()
        return WorkLease(
            holder: parts.nodeName, now: now,
            until: now.advanced(by: configuration.finalizeLease))
    }

    /// Goes on with a finalize whose request was answered "pending". Each round renews the lease; the end is
    /// a file, or an error that the client hears when it asks.
    func finishInBackground(_ id: SessionID, owner: OwnerID, _ expected: SHA256Digest?) {
        backgroundFinalizes.start(id) { [self] in
            do {
                while !Task.isCancelled, !isEnding {
                    guard case .pending = try await finalize(id, owner: owner, expecting: expected)
                    else { return }
                    // Another node may have taken it; that one answers at once.
                    try await parts.timer.sleep(for: .seconds(1))
                }
            } catch is CancellationError {
                return
            } catch {
                logger.warning(
                    "a promised finalize stopped",
                    metadata: [
                        "session.id": "\(id)", "error": "\(String(reflecting: error))",
                    ])
            }
        }
    }

    /// Takes over finalizes of nodes that are gone.
    func takeOverFinalizes() async throws {
        let jobs = try await parts.metadata.takeAbandonedFinalizes(lease: workLease, limit: 10)
        for job in jobs where !isEnding {
            if job.record.parts == nil {
                finishInBackground(job.record.id, owner: job.record.owner, job.expected)
            } else {
                await goOnComposing(job.record)
            }
        }
    }
}
