internal import KedgeModel

/// The mode for stores that assemble a file before it can be read, such as a bucket. A finalize can
/// take longer than its request, and needs bytes that other nodes have received. So it is a job
/// with a lease.
struct LeasedFinalize: FinalizeMode {
    let configuration: EngineConfiguration
    let queue: any FinalizeQueue
    let leases: FinalizeLeases
    let sessionBytes: SessionBytes

    var outlivesRequest: Bool { true }

    func begin(_ attempt: FinalizeAttempt, of session: LiveSession) async throws -> FinalizeStart {
        do {
            let isTaken = try await leases.acquireLease(on: attempt.id, attempt.expected)
            return isTaken ? .begun : .onOtherNode
        } catch MetadataError.wrongState {
            // Another node was faster; its result is the answer.
            try await session.refresh()
            return .over
        }
    }

    func end(_ attempt: FinalizeAttempt) { leases.endUse(of: attempt.id) }

    /// Assembles the file and hashes it: the missing bytes are on other nodes, or only in the
    /// store.
    func hashRest(of session: LiveSession, byteCount: Int64) async throws -> Bool {
        try await sessionBytes.assemble(session)
        await session.followPrefix()
        return try await session.prefix.wait(
            for: byteCount, timeout: configuration.finalizeTimeout)
    }

    func discardJob(of attempt: FinalizeAttempt) async throws {
        try await queue.discardFinalize(of: attempt.id, by: leases.workLease)
    }
}
