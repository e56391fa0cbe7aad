extension TransferEngine {
    /// Reads the blob that is due next, unless more urgent work becomes due meanwhile.
    ///
    /// - Returns: False when none is due.
    /// - Throws: `CancellationError`, and errors of the database; the blob stays due.
    package func scrubNext() async throws -> Bool {
        try await scrubber.scrubNext()
    }

    /// True while clients transfer bytes; the scrub reads more slowly then.
    package var isTransferring: Bool { uploads.admission.isTransferring }

    /// Extends superseded copies that are being read, removes those no longer needed, and logs a
    /// warning when the scrub of new files is behind. Called about once a minute.
    package func tendScrub() async throws {
        try await scrubber.tendScrub()
    }

    /// Creates missing scrub rows for files that older nodes stored. Looks at every file, so it
    /// should run rarely.
    package func addMissingScrubs() async throws {
        try await scrubber.addMissingScrubs()
    }

    /// Returns the backlog of the scrub.
    package func scrubBacklog() async throws -> ScrubBacklog {
        try await scrubber.scrubBacklog()
    }

    /// The counts of the scrub since this process started.
    package var scrubbed: ScrubCounts { scrubber.scrubbed }

    /// Logs the counts of the scrub since this process started, and its backlog.
    package func logScrub() async throws {
        try await scrubber.logScrub()
    }
}
