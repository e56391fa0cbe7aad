public import KedgeModel

extension TransferClient {
    /// Pauses a transfer, wherever it runs; the process that runs it stops within a second (R109).
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for one that has ended.
    public func pause(_ id: TransferID) async throws {
        _ = try await store.request(.pause, of: id)
    }

    /// Makes a paused transfer ready to go on; ``run(_:)`` does so.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for one that has ended.
    public func resume(_ id: TransferID) async throws {
        _ = try await store.request(.resume, of: id)
    }

    /// Gives a transfer up, wherever it runs. Its record stays; session and temporary file go (R102).
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for one that is completed.
    public func cancel(_ id: TransferID) async throws {
        if case .applied(let record) = try await store.request(.cancel, of: id) {
            await clearUp(after: record)
        }
    }

    /// Makes a failed, canceled or paused transfer ready to run again; one that waits tries at once.
    ///
    /// - Parameter fromScratch: Forgets everything that was transferred: new session, new temporary
    ///   file (R110).
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for one that is completed, or whose place
    ///   another unfinished transfer has taken, and for a canceled download whose URL had a password, a
    ///   query or a fragment: its record has them no more.
    public func retry(_ id: TransferID, fromScratch: Bool = false) async throws {
        let wish: TransferWish = fromScratch ? .restart : .retry
        if case .applied(let record) = try await store.request(wish, of: id), fromScratch {
            await clearUp(after: record)
        }
    }

    /// The transfer as it stands.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`.
    public func transfer(_ id: TransferID) async throws -> TransferSnapshot {
        let record = try await store.record(id)
        return TransferSnapshot(
            record, attempts: try await store.attemptCount(id),
            bytesPerSecond: runs.bytesPerSecond(of: id),
            isInterrupted: try await isInterrupted(record))
    }

    /// All transfers, oldest first.
    public func transfers() async throws -> [TransferSnapshot] {
        var snapshots: [TransferSnapshot] = []
        for record in try await store.records() {
            let id = record.status.id
            snapshots.append(
                TransferSnapshot(
                    record, attempts: try await store.attemptCount(id),
                    bytesPerSecond: runs.bytesPerSecond(of: id),
                    isInterrupted: try await isInterrupted(record)))
        }
        return snapshots
    }

    /// Everything support wants to know about a transfer, without secrets (R142).
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`.
    public func diagnose(_ id: TransferID) async throws -> TransferDiagnosis {
        let record = try await store.record(id)
        return TransferDiagnosis(
            record, attempts: try await store.attempts(id),
            mismatches: try await store.mismatches(of: id),
            isInterrupted: try await isInterrupted(record))
    }

    /// The transfer whenever it changed, up to its final state; whichever process runs it.
    ///
    /// A slow reader misses changes, never the newest one.
    public func snapshots(of id: TransferID) -> TransferSnapshots {
        TransferSnapshots(client: self, id: id)
    }

    /// Each transfer whenever it changed; ends when the task is canceled.
    public func allSnapshots() -> TransferSnapshots {
        TransferSnapshots(client: self, id: nil)
    }

    /// The server's files and sessions, apart from transfers.
    public var remote: RemoteAPI { RemoteAPI(api: api) }

    /// True when the record says that bytes move and no living process moves them.
    private func isInterrupted(_ record: TransferRecord) async throws -> Bool {
        let id = record.status.id
        guard record.isOrphaned, !runs.contains(id), try await !store.hasLivingOwner(id) else {
            return false
        }
        // A run may have ended since the record was read.
        return try await store.record(id).isOrphaned
    }
}
