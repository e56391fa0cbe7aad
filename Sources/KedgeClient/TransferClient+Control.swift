internal import KedgeFiles
public import KedgeModel
public import KedgeTransport
internal import Logging

extension TransferClient {
    /// Pauses a transfer. If another process runs it, that process stops within a second.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for a transfer that has ended.
    public func pause(_ id: TransferID) async throws {
        _ = try await store.request(.pause, of: id)
    }

    /// Makes a paused transfer ready for ``run(_:)``.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for a transfer that has ended.
    public func resume(_ id: TransferID) async throws {
        _ = try await store.request(.resume, of: id)
    }

    /// Makes all transfers that wait for a token (`PauseReason.signInNeeded`) ready to run, after
    /// the user has signed in. Forgets the token that ``ClientConfiguration/getToken`` returned.
    ///
    /// - Returns: The transfers, for ``run(_:)``; ``runQueued()`` runs them, too.
    @discardableResult
    public func tokenChanged() async throws -> [TransferID] {
        await tokens?.forget()
        var ids: [TransferID] = []
        for record in try await store.records()
        where record.status.pauseReason == .signInNeeded {
            do {
                try await resume(record.status.id)
                ids.append(record.status.id)
            } catch let error as TransferError
                where [.illegalTransition, .transferNotFound].contains(error.code)
            {
                // Another process has canceled or removed it since.
                continue
            }
        }
        return ids
    }

    /// Cancels a transfer, in whichever process it runs. Its session and temporary file are
    /// removed; its record stays.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for a completed transfer.
    public func cancel(_ id: TransferID) async throws {
        if let record = try await store.request(.cancel, of: id) {
            await discardLeftovers(of: record)
        }
    }

    /// Makes a failed, canceled or paused transfer ready to run again. A waiting transfer retries
    /// at once.
    ///
    /// `fromScratch` discards all progress: the transfer gets a new session or temporary file.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for a completed transfer, and if
    ///   another unfinished transfer has replaced this one. Also for a canceled download whose URL
    ///   had a password, a query or a fragment: the record no longer contains them.
    public func retry(_ id: TransferID, fromScratch: Bool = false) async throws {
        let command: TransferCommand = fromScratch ? .restart : .retry
        if let record = try await store.request(command, of: id), fromScratch {
            await discardLeftovers(of: record)
        }
    }

    /// Removes the record of a completed, failed or canceled transfer. The files stay. Without its
    /// record, a finished upload is no longer known to be at the server.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `ILLEGAL_TRANSITION` for a transfer that has not ended.
    public func removeRecord(_ id: TransferID) async throws {
        try await store.removeRecord(id)
    }

    /// Removes the records of all transfers that are in one of the states and have not changed for
    /// this time.
    ///
    /// - Parameters:
    ///   - states: States other than `completed`, `failed` and `canceled` are ignored.
    ///   - age: Time since the last change; zero for all.
    /// - Returns: The number of removed records.
    @discardableResult
    public func removeRecords(
        in states: Set<TransferState> = [.completed, .canceled], olderThan age: Duration = .zero
    ) async throws -> Int {
        let now = environment.now()
        return try await store.removeRecords(
            in: states,
            before: Timestamp(
                millisecondsSinceEpoch: now.millisecondsSinceEpoch + 1
                    - Int64(age / .milliseconds(1))))
    }

    /// Records that have ended within this time are not pruned: the command that ran the transfer
    /// may not have read its result yet.
    private static let leastPrunedAge = Duration.seconds(3600)

    /// Removes the records of completed and canceled transfers that have not changed for this time,
    /// at least an hour.
    ///
    /// Best effort: records that are in use by another process, or cannot be written, stay until a
    /// later call.
    package func pruneRecords(olderThan age: Duration) async {
        do {
            try await removeRecords(olderThan: max(age, Self.leastPrunedAge))
        } catch {
            configuration.logger.info(
                "pruning records failed", metadata: logFields(of: error))
        }
    }

    /// Requests other limits of all clients of the same records that follow requests; see
    /// ``followBandwidthRequests()``.
    public func requestBandwidth(_ rates: BandwidthRates) async throws {
        try await store.requestBandwidth(rates)
    }

    /// Whether another client of the same records is open. Files of processes that have ended were
    /// removed when this client was opened.
    package var hasOtherClients: Bool {
        get async throws {
            let (files, directory, own) = (environment.files, store.owners.directory, owner.token)
            return try await pool.run {
                try files.list(directory).contains { TransferID.isWellFormed($0) && $0 != own }
            }
        }
    }

    /// Adopts the limits that other processes request from now on (``requestBandwidth(_:)``),
    /// within a second, until the task is canceled. Does nothing without
    /// ``ClientConfiguration/bandwidth``.
    public func followBandwidthRequests() async {
        guard let limit = configuration.bandwidth else { return }
        var follower = BandwidthFollower()
        while !Task.isCancelled {
            do {
                let request = try await store.bandwidthRequest()
                if let rates = follower.note(request) { limit.rates = rates }
            } catch {
                // The records are busy, or closed by now: the next read finds the last request.
                configuration.logger.debug(
                    "reading limits failed", metadata: logFields(of: error))
            }
            // Ends early only when the task is canceled, and so the loop.
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// Cancels the unfinished upload of a file to this server, if there is one and no process runs
    /// it: the server has the file already.
    ///
    /// An upload with other metadata than that of the options stays. It becomes another file, for
    /// example one with another path.
    package func cancelUnfinishedUpload(path: String, options: UploadOptions) async throws {
        let newest = try await store.newestUpload(
            of: LocalPath.absolute(path), to: server(for: options.uploadProtocol),
            uploadProtocol: options.uploadProtocol)
        guard let newest, !newest.status.state.isFinal,
            options.metadata.allSatisfy({ newest.metadata[$0] == $1 }),
            try await !store.hasLivingOwner(newest.status.id)
        else { return }
        try await cancel(newest.status.id)
    }

    /// Runs a call that blocks on a thread of its own.
    package func blocking<Result: Sendable>(
        _ call: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await pool.run(call)
    }

    /// Makes a request that fails when the server is silent for this long.
    ///
    /// - Parameter timeout: Time left of the wait for the server; nil for no limit.
    package func waitingForAnswer<Result: Sendable>(
        atMost timeout: Duration?, _ request: @Sendable () async throws -> Result
    ) async throws -> Result {
        let limit = timeout.map { AnswerTimeout.duration(timeout: $0, waited: .zero) }
        return try await AnswerTimeout.$current.withValue(limit) { try await request() }
    }

    /// Whether this client's server has ever answered, according to the records.
    package var isServerKnown: Bool {
        get async throws { try await store.isKnownServer(serverURL) }
    }

    /// Returns the current state of a transfer.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`.
    public func transfer(_ id: TransferID) async throws -> TransferSnapshot {
        try await snapshot(of: try await store.record(id))
    }

    /// Returns all transfers, oldest first.
    public func transfers() async throws -> [TransferSnapshot] {
        var snapshots: [TransferSnapshot] = []
        for record in try await store.records() {
            snapshots.append(try await snapshot(of: record))
        }
        return snapshots
    }

    /// Returns the details of a transfer for support, without secrets.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`.
    public func diagnose(_ id: TransferID) async throws -> TransferDiagnosis {
        let record = try await store.record(id)
        return TransferDiagnosis(
            record, attempts: try await store.attempts(id),
            mismatches: try await store.mismatches(of: id),
            isInterrupted: try await isInterrupted(record))
    }

    /// Returns a sequence of a transfer's changes, up to its final state. Includes changes by other
    /// processes.
    ///
    /// A slow reader may miss changes, but never the newest one.
    public func snapshots(of id: TransferID) -> TransferSnapshots {
        TransferSnapshots(client: self, id: id)
    }

    /// Returns a sequence of the changes of all transfers. Ends when the task is canceled.
    public func allSnapshots() -> TransferSnapshots {
        TransferSnapshots(client: self, id: nil)
    }

    /// Files and sessions on the server, independent of transfers.
    public var remote: RemoteAPI {
        let own = URLText.origin(of: serverURL).flatMap {
            CurlTransport.byOrigin(configuration.originSettings)[$0]
        }
        return RemoteAPI(api: api, proxy: own?.proxy ?? configuration.proxy)
    }

    private func snapshot(of record: TransferRecord) async throws -> TransferSnapshot {
        let id = record.status.id
        return TransferSnapshot(
            record, attempts: try await store.attemptCount(id),
            bytesPerSecond: runs.bytesPerSecond(of: id),
            comparedByteCount: runs.comparedByteCount(of: id),
            isInterrupted: try await isInterrupted(record))
    }

    /// Whether the record states that bytes move although no living process runs the transfer.
    private func isInterrupted(_ record: TransferRecord) async throws -> Bool {
        let id = record.status.id
        guard record.isOrphaned, !runs.contains(id), try await !store.hasLivingOwner(id) else {
            return false
        }
        // A run may have ended since the record was read.
        return try await store.record(id).isOrphaned
    }
}
