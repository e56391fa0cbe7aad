internal import KedgeModel

/// Compares rows with bytes.
///
/// Runs with exclusive use of both, or beside running nodes of a shared store. In the second case
/// it checks a possible fault again before it reports it.
///
/// Without ``RepairedStores`` it changes nothing. With them it only does what loses nothing:
///
/// - Invalidates bytes that are not what an open session acknowledged.
/// - Quarantines bytes that no row knows.
/// - Marks a damaged file. The service then refuses it and looks for an earlier copy.
/// - Corrects the sums of owners.
///
/// The row and the blob of a damaged file are never touched: most of the bytes may be right, and
/// only their owner can judge their value.
package struct StoreCheck: Sendable {
    let rows: any CheckedRows
    let bytes: any CheckedBytes
    let repairs: RepairedStores?
    let scrubber: ByteScrubber?
    let tally: CheckTally

    /// Maximum number of rows in memory at a time.
    static let pageSize = 1000

    /// - Parameters:
    ///   - repairs: The stores to repair; nil to change nothing.
    ///   - scrubber: Reads all bytes back and hashes them; nil to compare names and sizes only.
    package init(
        rows: any CheckedRows, bytes: any CheckedBytes, repairs: RepairedStores? = nil,
        scrubber: ByteScrubber? = nil, tally: CheckTally
    ) {
        self.rows = rows
        self.bytes = bytes
        self.repairs = repairs
        self.scrubber = scrubber
        self.tally = tally
    }

    /// Checks everything. Ends early, and repairs nothing, when the database itself is damaged.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, and errors of a store that stop
    ///   the check. Findings made before are already reported.
    package func run() async throws {
        try Task.checkCancellation()
        let faults = try await rows.databaseFaults()
        guard faults.isEmpty else {
            for fault in faults { tally.report(fault) }
            return
        }
        if scrubber != nil {
            let promised = try await rows.promisedByteCount()
            tally.count { $0.plannedByteCount = promised }
        }
        try await checkQuotas()
        try await checkSessions()
        try await checkFiles()
        try await checkEntries()
    }

    private func checkQuotas() async throws {
        var last: OwnerID?
        while true {
            let page = try await rows.quotaDrifts(after: last, limit: Self.pageSize)
            for drift in page {
                try Task.checkCancellation()
                var finding = CheckFinding(.quotaDrift, drift.owner.text, drift.sentence)
                if let repairs {
                    try await repairs.metadata.repairQuota(of: drift.owner)
                    finding.isRepaired = true
                }
                tally.report(finding)
            }
            guard page.count == Self.pageSize, let owner = page.last?.owner else { return }
            last = owner
        }
    }

    private func checkSessions() async throws {
        var last: SessionID?
        while true {
            let page = try await rows.sessionsWithBytes(after: last, limit: 100)
            for session in page {
                try Task.checkCancellation()
                tally.count { $0.sessionCount += 1 }
                try await check(session)
            }
            guard let id = page.last?.id else { return }
            last = id
        }
    }

    private func checkFiles() async throws {
        var last: FileRecord?
        var earlier: BlobCheckResult?
        while true {
            let page = try await rows.liveFiles(after: last, limit: 100)
            for file in page {
                try Task.checkCancellation()
                tally.count { $0.fileCount += 1 }
                earlier = try await check(file, after: earlier)
            }
            guard let file = page.last else { return }
            last = file
        }
    }

    private func checkEntries() async throws {
        try await bytes.forEachEntry { entry in
            try Task.checkCancellation()
            switch entry {
            case .bytes(let stored): try await checkOwner(of: stored)
            case .quarantined(let name):
                tally.report(
                    CheckFinding(.quarantined, name, "quarantined earlier; not needed"))
            case .leftover(let name):
                tally.report(
                    CheckFinding(.leftover, name, "temporary file of the service; harmless"))
            case .unknown(let name):
                tally.report(
                    CheckFinding(.nameUnknown, name, "not a name of the service; left in place"))
            }
        }
    }

    private func checkOwner(of stored: StoredBytes) async throws {
        tally.count { summary in
            switch stored {
            case .staging: summary.stagingCount += 1
            case .blob, .superseded: summary.blobCount += 1
            }
        }
        guard try await !rows.isKnown(stored) else { return }
        // Another node may have removed the bytes first, and their rows afterwards.
        if bytes.isShared, try await !bytes.hasEntry(stored) { return }
        var finding =
            switch stored {
            case .staging(let key):
                CheckFinding(.stagingOrphaned, key.text, "no session refers to these bytes")
            case .blob(let digest):
                CheckFinding(.blobOrphaned, digest.hex, "no file refers to these bytes")
            case .superseded(let digest, _):
                CheckFinding(.blobOrphaned, digest.hex, "no row refers to this superseded copy")
            }
        if let bytes = repairs?.bytes {
            switch stored {
            case .staging(let key): try await bytes.quarantine(key)
            case .blob(let digest): try await bytes.quarantine(digest)
            case .superseded(let digest, let key):
                try await bytes.quarantine(digest, supersededBy: key)
            }
            finding.isRepaired = true
        }
        tally.report(finding)
    }

    /// Lends a reader to the closure and closes it, also when the closure throws.
    func lending<Result>(
        _ reader: any BlobReader, _ body: (any BlobReader) async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body(reader)
            await reader.close()
            return result
        } catch {
            await reader.close()
            throw error
        }
    }
}

extension QuotaDrift {
    /// The difference, for people.
    fileprivate var sentence: String {
        "the sums are \(kept.map(Self.text) ?? "missing"); the rows have \(Self.text(actual))"
    }

    private static func text(_ sums: Sums) -> String {
        "\(sums.storedBytes) stored and \(sums.reservedBytes) reserved bytes, "
            + "\(sums.openSessionCount) sessions"
    }
}
