internal import KedgeLocks
internal import KedgeModel
internal import Logging

/// The progress of a final upload.
package enum Concatenation: Sendable {
    case file(FileRecord)
    /// A partial upload lacks bytes, or the bytes are being copied.
    ///
    /// - Parameter byteCount: The size of the final upload; nil while unknown.
    case waiting(byteCount: Int64?)
}

/// Makes final uploads from their partial uploads, which clients send in parallel. One node does so
/// in the background, once all of them are complete. Another node takes over if that one fails.
final class Concatenator: Sendable {
    private let context: EngineContext
    private let rows: any FinalizeQueue & SessionStore
    private let finalizer: Finalizer
    private let copier: SourceCopier
    private let uploads: UploadLookup
    private let copyLimit: ConcurrencyLimit
    private let waitingConcatenations = WaitingConcatenations()
    /// The open final upload after which the next sweep continues; nil to start over.
    private let lastConcatenation = Mutex<SessionID?>(nil)
    private let concatenationChecks = BackgroundTasks<SessionID>()

    init(
        context: EngineContext, finalizer: Finalizer, copier: SourceCopier, uploads: UploadLookup
    ) {
        self.context = context
        rows = context.metadata
        self.finalizer = finalizer
        self.copier = copier
        self.uploads = uploads
        copyLimit = ConcurrencyLimit(context.configuration.maxConcurrentCopies)
    }

    /// Returns the progress of a final upload. Starts the concatenation when all partial uploads
    /// are complete.
    func concatenate(
        _ id: SessionID, owner: OwnerID, timeout: Duration = .zero
    ) async throws -> Concatenation {
        try await translating {
            var last = try await concatenation(of: id, owner: owner, keepsAlive: true)
            var waited = Duration.zero
            while waited < timeout, !context.isEnding, last.isReady, case .waiting = last.result {
                waited += try await waitForConcatenation(of: id, timeout - waited)
                last = try await concatenation(of: id, owner: owner, keepsAlive: true)
            }
            return last.result
        }
    }

    /// Starts the concatenations for which a completed session was the last missing partial upload.
    ///
    /// - Parameter timeout: Timeout for all of them together.
    func completedPartialUpload(
        _ source: SessionID, owner: OwnerID, timeout: Duration = .zero
    ) async {
        var left = timeout
        for id in waitingConcatenations.waiting(for: source, owner: owner) {
            left -= await context.timer.measure {
                do {
                    _ = try await concatenate(id, owner: owner, timeout: left)
                } catch {
                    // The partial upload is durable, so its own request succeeds. A request for the
                    // final upload gets this error.
                    if (error as? EngineError)?.endsConcatenation == true {
                        waitingConcatenations.remove(id)
                    }
                    context.logger.warning(
                        "concatenation start failed",
                        metadata: [
                            "session.id": "\(id)", "error": "\(String(reflecting: error))",
                        ])
                }
            }
        }
    }

    /// Checks in the background for final uploads that wait for a session that became a file.
    func startFinalUploads(of source: SessionID, owner: OwnerID) {
        guard !waitingConcatenations.waiting(for: source, owner: owner).isEmpty else { return }
        concatenationChecks.start(source) { [self] in
            await completedPartialUpload(source, owner: owner)
        }
    }

    /// Waits until this node has ended the concatenation. While another node runs it, waits for a
    /// second at most.
    ///
    /// - Returns: The time waited.
    private func waitForConcatenation(of id: SessionID, _ timeout: Duration) async throws
        -> Duration
    {
        let isOurs = finalizer.isRunningInBackground(id)
        var step = Duration.milliseconds(5)
        var waited = Duration.zero
        while waited < timeout, !context.isEnding {
            try await context.timer.sleep(for: step)
            waited += step
            step = min(step * 2, .milliseconds(250))
            if isOurs ? !finalizer.isRunningInBackground(id) : waited >= .seconds(1) { break }
        }
        return waited
    }

    private func concatenation(
        of id: SessionID, owner: OwnerID, keepsAlive: Bool
    ) async throws -> (result: Concatenation, isReady: Bool) {
        let view = try await uploads.view(of: id, owner: owner)
        guard let ids = view.sourceIDs else {
            throw EngineError(.badRequest, "The upload is not a final upload.")
        }
        if view.state == .completed, let file = view.fileID {
            waitingConcatenations.remove(id)
            return (.file(try await uploads.file(file, owner: owner)), true)
        }
        // A session with all of its bytes no longer needs its partial uploads.
        if view.state == .finalizing || view.fileSize == view.offset {
            beginConcatenating(id, of: ids, owner: owner)
            return (.waiting(byteCount: view.fileSize), true)
        }
        // Added before the check, so that a partial upload that completes during the check finds
        // it.
        waitingConcatenations.add(id, ids, owner: owner)
        let (byteCount, isReady) = try await uploads.sourcesState(of: ids, owner: owner)
        if let byteCount {
            try await uploads.requirePermittedSize(byteCount, of: id, owner: owner)
        }
        if keepsAlive { try await uploads.keepAlive([id] + ids, owner: owner) }
        if isReady { beginConcatenating(id, of: ids, owner: owner) }
        return (.waiting(byteCount: view.fileSize ?? byteCount), isReady)
    }

    private func beginConcatenating(_ id: SessionID, of ids: [SessionID], owner: OwnerID) {
        finalizer.startInBackground(id) { [self] in
            do {
                // Few at a time, and outside the limit of bodies: copying must not keep clients
                // from uploading.
                try await copyLimit.withPermit {
                    try Task.checkCancellation()
                    try await makeFinalUpload(id, of: ids, owner: owner)
                }
            } catch is CancellationError {
                return
            } catch {
                guard !context.isEnding else { return }
                context.logger.warning(
                    "concatenation failed",
                    metadata: ["session.id": "\(id)", "error": "\(String(reflecting: error))"])
                await discardFinalize(of: id)
            }
        }
    }

    /// Copies the bytes into the session and finalizes it, unless another node does so.
    private func makeFinalUpload(_ id: SessionID, of ids: [SessionID], owner: OwnerID) async throws
    {
        do {
            guard try await finalizer.leases.acquireLease(on: id, nil) else { return }
        } catch MetadataError.wrongState(.completed) {
            return try await uploads.refresh(id, owner: owner)
        }
        defer { finalizer.leases.endUse(of: id) }
        try await translating {
            let view = try await uploads.view(of: id, owner: owner)
            if view.state == .open, view.fileSize != view.offset || view.fileSize == nil {
                try await copier.fill(id, from: ids, owner: owner)
            }
            _ = try await finalizer.finish(id, owner: owner, timeout: .seconds(24 * 3600))
        }
        await uploads.endSources(ids)
        waitingConcatenations.remove(id)
    }

    /// Drops the pending finalize, so that the session can expire. A failure here leaves that to
    /// the sweep.
    private func discardFinalize(of id: SessionID) async {
        try? await rows.discardFinalize(of: id, by: finalizer.leases.workLease)
    }

    /// Resumes concatenations that no request asks for. They were interrupted by a crash, or this
    /// node did not know of them when their last partial upload completed. Each call takes up to a
    /// hundred, in turn.
    func resumeConcatenations() async throws {
        let batch = try await rows.openConcatenations(
            after: lastConcatenation.withLock { $0 }, limit: 100)
        lastConcatenation.withLock { $0 = batch.count == 100 ? batch.last?.id : nil }
        for record in batch where !context.isEnding { await resumeConcatenating(record) }
    }

    /// Starts the concatenation of a session that is ready, and lets one that is not expire.
    func resumeConcatenating(_ record: SessionRecord) async {
        guard !finalizer.isRunningInBackground(record.id) else { return }
        do {
            let concatenation = try await concatenation(
                of: record.id, owner: record.owner, keepsAlive: false)
            if !concatenation.isReady { await discardFinalize(of: record.id) }
        } catch let error as EngineError where error.endsConcatenation {
            waitingConcatenations.remove(record.id)
            await discardFinalize(of: record.id)
        } catch {
            context.logger.warning(
                "concatenation check failed",
                metadata: ["session.id": "\(record.id)", "error": "\(String(reflecting: error))"])
        }
    }

    /// Cancels the checks for final uploads and waits for them.
    func close() async { await concatenationChecks.close() }
}

extension EngineError {
    /// True when the concatenation can never succeed.
    fileprivate var endsConcatenation: Bool {
        meansGone || [.fileTooLarge, .forbidden].contains(code)
    }
}
