internal import KedgeModel

extension TransferEngine {
    /// Takes over finalizes whose nodes no longer renew the lease.
    func takeOverFinalizes() async throws {
        let jobs = try await context.metadata.takeAbandonedFinalizes(
            lease: finalizer.leases.workLease, limit: 10)
        for job in jobs where !isEnding {
            if job.record.parts == nil {
                finalizer.finishInBackground(job.record.id, owner: job.record.owner, job.expected)
            } else {
                await concatenator.resumeConcatenating(job.record)
            }
        }
    }
}
