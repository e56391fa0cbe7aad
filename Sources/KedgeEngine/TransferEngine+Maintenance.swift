extension TransferEngine {
    /// Reconciles rows and bytes after a stop of any kind. Called once, before anything else.
    ///
    /// Finishes finalizing sessions. Invalidates chunks whose bytes are missing and logs that at
    /// level critical; clients send them again. Moves bytes without a row to quarantine, and never
    /// deletes them.
    package func recover() async throws {
        try await recovery.recover()
    }

    /// Runs one sweep: expires sessions, forgets those past their grace, evicts idle sessions from
    /// memory, removes garbage, and resumes finalizes and concatenations that were left behind.
    package func sweep() async throws {
        try await sweeper.sweep()
    }

    /// Stops all work and closes the stores. The engine must not be used afterwards.
    package func close() async throws {
        await interruptWriters()
        await concatenator.close()
        await finalizer.close()
        await garbageCollector.close()
        await finishHealthCheck()
        try await translating {
            try await context.metadata.close()
            await context.bytes.close()
        }
    }
}
