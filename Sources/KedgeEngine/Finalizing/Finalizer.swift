internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel
internal import Logging

/// The outcome of a finalize.
package enum FinalizeOutcome: Sendable {
    case completed(FileRecord)
    /// The whole-file hash is still being computed and covers this many bytes. The client asks
    /// again.
    case pending(verifiedBytes: Int64)
}

/// Turns complete sessions into files: within a request, or in the background under a lease.
final class Finalizer: Sendable {
    let leases: FinalizeLeases
    let sessionBytes: SessionBytes
    let mode: any FinalizeMode
    private let context: EngineContext
    private let registry: SessionRegistry
    private let sessionWriter: SessionWriter
    private let hashWait: FileHashWait
    private let promoter: Promoter
    let reuse: StoredFileReuse
    private let finalizeLocks = KeyedLock<SessionID>()
    private let backgroundFinalizes = BackgroundTasks<SessionID>()
    private let completionObserver = CompletionObserver()

    init(
        context: EngineContext, registry: SessionRegistry, sessionWriter: SessionWriter,
        files: FileService, digestLocks: KeyedLock<SHA256Digest>
    ) {
        self.context = context
        self.registry = registry
        self.sessionWriter = sessionWriter
        leases = FinalizeLeases(
            queue: context.metadata, clock: context.clock, nodeName: context.nodeName,
            duration: context.configuration.finalizeLease)
        sessionBytes = SessionBytes(
            context: context, rows: context.metadata, registry: registry)
        if context.traits.needsAssembly {
            mode = LeasedFinalize(
                configuration: context.configuration, queue: context.metadata, leases: leases,
                sessionBytes: sessionBytes)
        } else {
            mode = ImmediateFinalize()
        }
        hashWait = FileHashWait(
            configuration: context.configuration, registry: registry, mode: mode,
            sessionBytes: sessionBytes, finalizeLocks: finalizeLocks)
        promoter = Promoter(
            context: context, rows: context.metadata, digestLocks: digestLocks,
            sessionBytes: sessionBytes)
        reuse = StoredFileReuse(
            context: context, registry: registry, files: files, digestLocks: digestLocks)
    }

    /// Sets the closure that gets each session that this node has turned into a file. It must not
    /// retain the finalizer.
    func observeCompletions(_ observer: @escaping @Sendable (SessionID, OwnerID) -> Void) {
        completionObserver.set(observer)
    }

    /// Turns a complete session into a file that is verified, durable and atomically visible.
    /// Idempotent. With an expected digest, an empty session becomes a file with stored bytes of
    /// its owner, if there are such bytes.
    func finalize(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil,
        reusesStoredFiles: Bool = false
    ) async throws -> FinalizeOutcome {
        try await translating {
            var attempt = FinalizeAttempt(id: id, owner: owner, expected: expected)
            defer { if attempt.hasBegun { mode.end(attempt) } }
            if reusesStoredFiles,
                let file = try await finalizeFromStored(id, owner: owner, expecting: expected)
            {
                completionObserver.notify(id, owner)
                return .completed(file)
            }
            try await commitLast(of: id, owner: owner)
            if let verified = try await hashWait.bytesStillUnverified(&attempt) {
                if mode.outlivesRequest { finishInBackground(id, owner: owner, expected) }
                return .pending(verifiedBytes: verified)
            }
            do {
                let outcome = try await finalizeLocked(id, owner: owner, expecting: expected)
                // This may be the last partial upload that a final upload waits for.
                if case .completed = outcome { completionObserver.notify(id, owner) }
                return outcome
            } catch let error as EngineError where error.isAnswerToFinalize {
                // The client gets this error, so the finalize is no longer pending.
                try await mode.discardJob(of: attempt)
                throw error
            }
        }
    }

    private func finalizeFromStored(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest?
    ) async throws -> FileRecord? {
        guard let expected else { return nil }
        // Without the lock first: most sessions have bytes.
        let hasBytes = try await registry.withSession(id, owner: owner) {
            await $0.ledger.claimedEnd > 0
        }
        guard !hasBytes else { return nil }
        return try await finalizeLocks.withLock(id) {
            try await reuse.complete(id, owner: owner, digest: expected)
        }
    }

    private func finalizeLocked(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest?
    ) async throws -> FinalizeOutcome {
        try await finalizeLocks.withLock(id) {
            try await registry.withSession(id, owner: owner) { session in
                let record = await session.ledger.record
                if record.state == .completed || record.state == .finalizing {
                    return .completed(
                        try await promoter.finishAgain(session, record, expecting: expected))
                }
                return try await promoter.finalizeOpen(session, expecting: expected)
            }
        }
    }

    /// Turns a complete session into a file and waits for it. Idempotent.
    ///
    /// - Parameter timeout: ``EngineConfiguration/finishTimeout`` when nil.
    /// - Throws: The errors of ``finalize(_:owner:expecting:)``; `UNAVAILABLE` after the timeout.
    func finish(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil,
        timeout: Duration? = nil
    ) async throws -> FileRecord {
        try await translating {
            var waited = Duration.zero
            var step = Duration.milliseconds(20)
            while true {
                var outcome: FinalizeOutcome?
                waited += try await context.timer.measure {
                    outcome = try await finalize(id, owner: owner, expecting: expected)
                }
                if case .completed(let file) = outcome { return file }
                guard waited < timeout ?? context.configuration.finishTimeout else {
                    throw EngineError(.unavailable, "The file is still being verified; try again.")
                }
                // While another node has the lease, `finalize` returns without waiting.
                try await context.timer.sleep(for: step)
                waited += step
                step = min(step * 2, .seconds(1))
            }
        }
    }

    /// Commits the last chunk of a session if only this commit is missing.
    func commitLast(of id: SessionID, owner: OwnerID) async throws {
        try await registry.withSession(id, owner: owner) { session in
            let ledger = await session.ledger
            guard ledger.record.state == .open, ledger.lacksOnlyLastCommit,
                let end = ledger.record.fileSize
            else { return }
            _ = try await sessionWriter.append(
                AppendPut(offset: end), to: session, body: EmptyBody())
        }
    }

    /// Runs the body while the session is not being finalized.
    func withoutFinalize<Result: Sendable>(
        of id: SessionID, _ body: () async throws -> Result
    ) async throws -> Result {
        try await finalizeLocks.withLock(id, body)
    }

    /// True while the session is being finalized.
    func isFinalizing(_ id: SessionID) async -> Bool { await finalizeLocks.isHeld(id) }

    /// Continues a finalize whose request was answered "pending". Each round renews the lease. The
    /// result is a file, or an error that the client gets when it asks again.
    func finishInBackground(_ id: SessionID, owner: OwnerID, _ expected: SHA256Digest?) {
        backgroundFinalizes.start(id) { [self] in
            do {
                while !Task.isCancelled, !context.isEnding {
                    guard case .pending = try await finalize(id, owner: owner, expecting: expected)
                    else { return }
                    // While another node has the lease, the call returns at once.
                    try await context.timer.sleep(for: .seconds(1))
                }
            } catch is CancellationError {
                return
            } catch {
                context.logger.warning(
                    "background finalize failed",
                    metadata: [
                        "session.id": "\(id)", "error": "\(String(reflecting: error))",
                    ])
            }
        }
    }

    /// Starts work in the background that ends in a finalize, unless some is under way for the
    /// session.
    func startInBackground(_ id: SessionID, _ work: @escaping @Sendable () async -> Void) {
        backgroundFinalizes.start(id, work)
    }

    /// True while work for the session is under way in the background.
    func isRunningInBackground(_ id: SessionID) -> Bool { backgroundFinalizes.isRunning(id) }

    /// Cancels the work in the background and waits for it.
    func close() async { await backgroundFinalizes.close() }
}

extension EngineError {
    /// True when the client learns from the error that the session cannot become a file as it is.
    fileprivate var isAnswerToFinalize: Bool {
        [.missingChunks, .sizeMismatch, .integrityMismatch].contains(code)
    }
}
