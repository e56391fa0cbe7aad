internal import KedgeModel
internal import Logging

/// Resumes finalizes and concatenations that no request and no node continues.
struct FinalizeResumption: Sendable {
    let context: EngineContext
    let rows: any FinalizeQueue
    let finalizer: Finalizer
    let concatenator: Concatenator

    /// Finishes one finalizing session. A failure is only logged.
    func finishInterrupted(_ record: SessionRecord) async {
        do {
            _ = try await finalizer.finalize(record.id, owner: record.owner)
            context.logger.notice(
                "interrupted finalize finished", metadata: ["session.id": "\(record.id)"])
        } catch let error as EngineError where error.code == .missingChunks {
            // Already logged, and the session is open again.
            return
        } catch let error as EngineError
            where error.code == .sessionClosed || error.code == .sessionNotFound
        {
            // Canceled since it was listed.
            return
        } catch {
            // A full disk, for example. The session stays finalizing; the client asks again, or the
            // next sweep retries. Other sessions do not wait for it.
            context.logger.error(
                "interrupted finalize failed",
                metadata: [
                    "session.id": "\(record.id)", "error": "\(String(reflecting: error))",
                ])
        }
    }

    /// Resumes what neither a request nor a node continues.
    func resumeLeftBehind() async throws {
        try await finishLeftBehind()
        try await concatenator.resumeConcatenations()
    }

    /// Finishes sessions whose finalize failed, or whose client did not ask again.
    private func finishLeftBehind() async throws {
        if finalizer.mode.outlivesRequest { return try await takeOverFinalizes() }
        for record in try await rows.finalizingSessions() {
            guard !context.isEnding else { return }
            // A finalize under way needs no help, and the sweep does not wait for it.
            if await finalizer.isFinalizing(record.id) { continue }
            await finishInterrupted(record)
        }
    }

    /// Takes over finalizes whose nodes no longer renew the lease.
    func takeOverFinalizes() async throws {
        let jobs = try await rows.takeAbandonedFinalizes(
            lease: finalizer.leases.workLease, limit: 10)
        for job in jobs where !context.isEnding {
            if job.record.sourceIDs == nil {
                finalizer.finishInBackground(job.record.id, owner: job.record.owner, job.expected)
            } else {
                await concatenator.resumeConcatenating(job.record)
            }
        }
    }
}
