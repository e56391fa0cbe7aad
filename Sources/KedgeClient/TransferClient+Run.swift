public import KedgeModel
internal import KedgeTransport
internal import Logging

extension TransferClient {
    /// Number of new versions of a changing file that one run follows before the transfer fails.
    private static let maxReplacementCount = 3
    /// Interval at which a run observes a transfer that another process runs.
    private static let watchInterval = Duration.milliseconds(200)

    /// Runs a transfer in this process until it is completed, failed, canceled or paused.
    ///
    /// A transfer that waits for a token (`PauseReason.signInNeeded`) tries again, with the token
    /// that this client has.
    ///
    /// While another process runs the transfer, this call waits, and takes over if that process
    /// dies. If the file of an upload has changed, the run continues with a new transfer and
    /// returns that one; its ``TransferSnapshot/replaces`` names the old one. If the server stays
    /// unreachable for longer than ``ClientConfiguration/serverTimeout``, the transfer is returned
    /// as `queued`.
    ///
    /// Cancelling the task saves all progress, leaves the transfer paused for the next run
    /// (`PauseReason.shutdown`) and returns.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`; `STORE_DAMAGED` if the records cannot be written. Failures
    ///   of the transfer itself are in the snapshot.
    public func run(_ id: TransferID) async throws -> TransferSnapshot {
        var current = id
        var replacementCount = 0
        while true {
            guard await slots.take() else { return try await transfer(current) }
            let step: RunStep
            do {
                step = try await runOnce(
                    current, mayReplace: replacementCount < Self.maxReplacementCount)
            } catch {
                await slots.give()
                throw error
            }
            await slots.give()
            switch step {
            case .ended:
                return try await transfer(current)
            case .again:
                continue
            case .replaced(let newer):
                current = newer
                replacementCount += 1
            case .held:
                if runs.isSuspending { return try await transfer(current) }
                do {
                    try await environment.pause(Self.watchInterval)
                } catch {
                    // Canceled while another process runs the transfer: there is nothing to save.
                    return try await transfer(current)
                }
            }
        }
    }

    /// Runs all waiting transfers, including those of processes that have ended. Returns when none
    /// of them can continue. A failed transfer does not stop the others.
    public func runQueued() async throws -> [TransferSnapshot] {
        let waiting = try await resumableTransfers()
        return try await withThrowingTaskGroup(of: TransferSnapshot.self) { group in
            for snapshot in waiting { group.addTask { try await self.run(snapshot.id) } }
            var results: [TransferSnapshot] = []
            for try await snapshot in group { results.append(snapshot) }
            return results
        }
    }

    /// Returns the transfers that ``runQueued()`` would run, oldest first: those that wait, also
    /// for a token, and those of processes that have ended. Transfers that the user paused, and
    /// failed ones, are not among them.
    public func resumableTransfers() async throws -> [TransferSnapshot] {
        var snapshots: [TransferSnapshot] = []
        for record in try await store.records() {
            let status = record.status
            let isWaiting =
                status.state == .queued || status.pauseReason?.endsWithNextRun == true
            guard isWaiting || record.isOrphaned else { continue }
            snapshots.append(try await transfer(status.id))
        }
        return snapshots
    }

    /// Stops all runs of this client before the process ends, for example on Ctrl-C.
    ///
    /// Progress is saved, and the next run continues the transfers. Returns when all runs have
    /// stopped. Afterwards this client starts no transfer, not even one that waits for a slot.
    public func suspendAll() async throws {
        runs.suspend()
        while !runs.isEmpty {
            // Runs notice within 100 ms and then finish their work in progress. Cancelling the
            // caller does not end this loop early, because that would lose progress.
            try? await environment.pause(.milliseconds(20))
            await Task.yield()
        }
    }

    private func runOnce(_ id: TransferID, mayReplace: Bool) async throws -> RunStep {
        let meter = RateMeter(now: environment.now)
        guard runs.begin(id, meter: meter) else { return .held }
        defer { runs.end(id) }
        switch try await store.acquireLease(id, for: owner) {
        case .held: return .held
        case .notRunnable: return .ended
        case .acquired(let lease):
            do {
                return try await run(lease, meter: meter, mayReplace: mayReplace)
            } catch RunInterruption.leaseLost {
                // Another process took over, for example after this machine slept: observe it.
                return .held
            }
        }
    }

    private func run(
        _ lease: Lease, meter: RateMeter, mayReplace: Bool
    ) async throws -> RunStep {
        try await store.start(lease)
        let context = try await makeContext(lease, meter: meter)
        let watcher = LeaseWatcher(
            lease: lease, store: store, runs: runs, pause: environment.pause)
        let end = await withTaskGroup(of: RunEnd?.self) { group in
            group.addTask { await Self.work(context) }
            group.addTask { await watcher.watch() }
            // Replaced by the worker's own end at the latest.
            var end = RunEnd.failed(CancellationError())
            for await next in group {
                if let next { end = end.combined(with: next) }
                group.cancelAll()
            }
            return end
        }
        return try await settle(end, lease, mayReplace: mayReplace)
    }

    private static func work(_ context: WorkerContext) async -> RunEnd {
        do {
            let store = context.store
            switch context.lease.direction {
            case .upload:
                let upload = try await store.upload(context.lease.id)
                if upload.uploadProtocol == .native {
                    try await UploadWorker.open(upload, context: context).run()
                } else {
                    try await SequentialUploadWorker.open(upload, context: context).run()
                }
            case .download:
                let download = try await store.download(context.lease.id)
                try await DownloadWorker(download, context: context).run()
            }
            return .completed
        } catch {
            return .failed(error)
        }
    }

    /// Records the end of a round and decides what follows.
    private func settle(_ end: RunEnd, _ lease: Lease, mayReplace: Bool) async throws -> RunStep {
        switch end {
        case .completed:
            return .ended
        case .command(let command):
            return try await carryOut(command, lease)
        case .suspended, .failed(is CancellationError):
            try await store.pause(lease, reason: .shutdown)
            return .ended
        case .lost(let error):
            throw error
        case .failed(let interruption as RunInterruption):
            return try await settle(interruption, lease, mayReplace: mayReplace)
        case .failed(let error):
            let facts = FailureFacts(error)
            if facts.code == .unauthenticated, !facts.isByLink {
                try await pauseForSignIn(lease, after: facts)
            } else {
                try await fail(lease, with: error)
            }
            return .ended
        }
    }

    private func settle(
        _ interruption: RunInterruption, _ lease: Lease, mayReplace: Bool
    ) async throws -> RunStep {
        switch interruption {
        case .leaseLost:
            throw interruption
        case .serverTimeout(let failure, let timeout):
            try await store.wait(
                lease, code: failure.code, message: failure.message(gaveUpAfter: timeout),
                answer: failure.answer, attempt: failure.failedAttempt())
            try await store.releaseLease(lease)
            return .ended
        case .sourceChanged where mayReplace:
            return try await replaceChangedUpload(lease)
        case .sourceChanged:
            try await fail(lease, with: interruption)
            return .ended
        }
    }

    private func makeContext(_ lease: Lease, meter: RateMeter) async throws -> WorkerContext {
        let record = try await store.record(lease.id)
        return WorkerContext(
            lease: lease, store: store, api: api(for: record),
            environment: environment, pool: pool,
            coordinator: RetryCoordinator(
                lease: lease, store: store, environment: environment,
                configuration: configuration, serverHistory: try await serverHistory(of: record)),
            rate: meter, configuration: configuration, logger: configuration.logger)
    }

    /// Returns whether the transfer's server has answered before, according to the records.
    private func serverHistory(of record: TransferRecord) async throws -> ServerHistory {
        let hasAnswered: Bool
        switch record {
        case .upload(let upload) where upload.uploadProtocol != .native:
            hasAnswered = upload.uploadURL != nil
        case .download(let download) where download.reference.isURL:
            hasAnswered = download.expectedSize != nil || download.validator != nil
        case .upload, .download:
            let server = record.status.serverURL
            return try await store.isKnownServer(server) ? .known : .newKedge(server)
        }
        return hasAnswered ? .known : .new
    }
}

extension TransferClient {
    /// Returns the interface to a transfer's server. A transfer stays with the server on which it
    /// began. The token is sent only to this client's own server; other servers get
    /// theirs.
    func api(of server: String) -> ServerAPI {
        if server == serverURL { return api }
        // For other protocols, the record keeps the URL as given, with or without a trailing slash.
        let base = URLText.normalizedBase(server)
        let isOwn = base == serverURL
        return ServerAPI(
            baseURL: server,
            token: isOwn ? configuration.token : base.flatMap { otherTokens[$0] },
            tokens: isOwn ? tokens : nil, transport: api.exchange.transport)
    }

    /// Returns the server URL to record for a new upload.
    func server(for uploadProtocol: UploadProtocol) -> String {
        guard uploadProtocol != .native else { return serverURL }
        let given = configuration.serverURL
        return given.drop { $0 != ":" }.dropFirst(3).contains("/") ? given : given + "/"
    }
}
