internal import KedgeLocks
package import KedgeModel
internal import Logging

/// The progress of a final upload.
package enum Composition: Sendable {
    case file(FileRecord)
    /// A partial upload lacks bytes, or the bytes are being copied.
    ///
    /// - Parameter byteCount: The size of the final upload; nil while unknown.
    case waiting(byteCount: Int64?)
}

// Concatenation: clients send the parts of a file in parallel, as partial uploads of their own. One
// node makes the final upload from them in the background, once all of them are complete. Another
// node takes over if that one fails.
extension TransferEngine {
    /// Returns the progress of a final upload. Starts the concatenation when all partial uploads
    /// are complete.
    ///
    /// A call keeps the session and its open partial uploads from expiring.
    ///
    /// - Parameter patience: Timeout for a concatenation that can run now. It goes on afterwards.
    /// - Throws: `BAD_REQUEST` when the session is not a final upload, `SESSION_EXPIRED` when it or
    ///   a partial upload is gone, `FILE_GONE` when its file was deleted, `FILE_TOO_LARGE`, and the
    ///   errors of ``uploadView(of:owner:stopsAppend:)``.
    package func compose(
        _ id: SessionID, owner: OwnerID, patience: Duration = .zero
    ) async throws -> Composition {
        try await translating {
            var last = try await composition(of: id, owner: owner, keepsAlive: true)
            var waited = Duration.zero
            while waited < patience, !isEnding, last.isReady, case .waiting = last.result {
                waited += try await waitForMaking(of: id, patience - waited)
                last = try await composition(of: id, owner: owner, keepsAlive: true)
            }
            return last.result
        }
    }

    /// Starts the concatenations for which a completed session was the last missing partial upload.
    ///
    /// - Parameter patience: Timeout for all of them together.
    package func completedPart(
        _ part: SessionID, owner: OwnerID, patience: Duration = .zero
    ) async {
        var left = patience
        for id in waitingCompositions.waiting(for: part, owner: owner) {
            left -= await parts.timer.measure {
                do {
                    _ = try await compose(id, owner: owner, patience: left)
                } catch {
                    // The partial upload is durable, so its own request succeeds. A request for the
                    // final upload gets this error.
                    if (error as? EngineError)?.endsComposition == true {
                        waitingCompositions.remove(id)
                    }
                    logger.warning(
                        "an upload cannot be made of its parts",
                        metadata: [
                            "session.id": "\(id)", "error": "\(String(reflecting: error))",
                        ])
                }
            }
        }
    }

    /// Checks in the background for final uploads that wait for a session that became a file.
    func lookAtWholes(of part: SessionID, owner: OwnerID) {
        guard !waitingCompositions.waiting(for: part, owner: owner).isEmpty else { return }
        compositionChecks.start(part) { [self] in await completedPart(part, owner: owner) }
    }

    /// Waits until this node has ended the concatenation. While another node runs it, waits for a
    /// second at most.
    ///
    /// - Returns: The time waited.
    private func waitForMaking(of id: SessionID, _ patience: Duration) async throws -> Duration {
        let isOurs = backgroundFinalizes.isRunning(id)
        var step = Duration.milliseconds(5)
        var waited = Duration.zero
        while waited < patience, !isEnding {
            try await parts.timer.sleep(for: step)
            waited += step
            step = min(step * 2, .milliseconds(250))
            if isOurs ? !backgroundFinalizes.isRunning(id) : waited >= .seconds(1) { break }
        }
        return waited
    }

    private func composition(
        of id: SessionID, owner: OwnerID, keepsAlive: Bool
    ) async throws -> (result: Composition, isReady: Bool) {
        let view = try await uploadView(of: id, owner: owner)
        guard let ids = view.parts else { throw EngineError(.badRequest, "It has no parts.") }
        if view.state == .completed, let file = view.fileID {
            waitingCompositions.remove(id)
            return (.file(try await self.file(file, owner: owner)), true)
        }
        // A session with all of its bytes no longer needs its partial uploads.
        if view.state == .finalizing || view.fileSize == view.offset {
            beginComposing(id, of: ids, owner: owner)
            return (.waiting(byteCount: view.fileSize), true)
        }
        // Added before the check, so that a partial upload that completes during the check finds
        // it.
        waitingCompositions.add(id, ids, owner: owner)
        let (byteCount, isReady) = try await partsState(of: ids, owner: owner)
        if keepsAlive {
            for id in [id] + ids {
                try await registry.withSession(id, owner: owner) { try await $0.stayAlive() }
            }
        }
        if isReady { beginComposing(id, of: ids, owner: owner) }
        return (.waiting(byteCount: view.fileSize ?? byteCount), isReady)
    }

    /// - Returns: The total size, nil while unknown, and whether all partial uploads are complete.
    /// - Throws: `SESSION_EXPIRED` when one is gone, `FILE_TOO_LARGE`.
    private func partsState(
        of ids: [SessionID], owner: OwnerID
    ) async throws -> (byteCount: Int64?, isReady: Bool) {
        var sum: Int64? = 0
        var isReady = true
        for id in ids {
            do {
                let view = try await uploadView(of: id, owner: owner)
                if view.state == .completed, let file = view.fileID {
                    _ = try await self.file(file, owner: owner)
                }
                isReady = isReady && view.fileSize == view.offset
                sum = sum.flatMap { sum in
                    view.fileSize.map { sum.addingReportingOverflow($0).partialValue }
                }
                if let sum, sum < 0 || sum > configuration.maxFileSize { throw tooLarge() }
            } catch let error as EngineError where error.meansGone {
                throw EngineError(.sessionExpired, "A part of the upload is gone.")
            }
        }
        return (sum, isReady)
    }
}

// Background execution of concatenations.
extension TransferEngine {
    private func beginComposing(_ id: SessionID, of ids: [SessionID], owner: OwnerID) {
        backgroundFinalizes.start(id) { [self] in
            do {
                // Few at a time, and outside the limit of bodies: copying must not keep clients
                // from uploading.
                let slot = abs(id.hashValue % configuration.maxConcurrentFills)
                try await fillLocks.withLock(slot) {
                    try Task.checkCancellation()
                    try await makeWhole(id, of: ids, owner: owner)
                }
            } catch is CancellationError {
                return
            } catch {
                guard !isEnding else { return }
                logger.warning(
                    "an upload was not made of its parts yet",
                    metadata: ["session.id": "\(id)", "error": "\(String(reflecting: error))"])
                await dropPromise(of: id)
            }
        }
    }

    /// Copies the bytes into the session and finalizes it, unless another node does so.
    private func makeWhole(_ id: SessionID, of ids: [SessionID], owner: OwnerID) async throws {
        do {
            guard try await takeWork(on: id, nil) else { return }
        } catch MetadataError.wrongState(.completed) {
            return try await registry.withSession(id, owner: owner) { try await $0.refresh() }
        }
        defer { letGo(of: id) }
        try await translating {
            let view = try await uploadView(of: id, owner: owner)
            if view.state == .open, view.fileSize != view.offset || view.fileSize == nil {
                try await fill(id, from: ids, owner: owner)
            }
            _ = try await finish(id, owner: owner, patience: .seconds(24 * 3600))
        }
        waitingCompositions.remove(id)
    }

    /// Drops the pending finalize, so that the session can expire. A failure here leaves that to
    /// the sweep.
    private func dropPromise(of id: SessionID) async {
        try? await parts.metadata.dropFinalize(of: id, by: workLease)
    }

    /// Resumes concatenations that no request asks for. They were interrupted by a crash, or this
    /// node did not know of them when their last partial upload completed. Each call takes up to a
    /// hundred, in turn.
    func composeLeftBehind() async throws {
        let batch = try await parts.metadata.openCompositions(
            after: lastComposition.withLock { $0 }, limit: 100)
        lastComposition.withLock { $0 = batch.count == 100 ? batch.last?.id : nil }
        for record in batch where !isEnding { await goOnComposing(record) }
    }

    /// Starts the concatenation of a session that is ready, and lets one that is not expire.
    func goOnComposing(_ record: SessionRecord) async {
        guard !backgroundFinalizes.isRunning(record.id) else { return }
        do {
            let composition = try await composition(
                of: record.id, owner: record.owner, keepsAlive: false)
            if !composition.isReady { await dropPromise(of: record.id) }
        } catch let error as EngineError where error.endsComposition {
            waitingCompositions.remove(record.id)
            await dropPromise(of: record.id)
        } catch {
            logger.warning(
                "an upload that is made of others was not looked at",
                metadata: ["session.id": "\(record.id)", "error": "\(String(reflecting: error))"])
        }
    }
}

extension EngineError {
    /// True when the session or file is gone, or never existed.
    fileprivate var meansGone: Bool {
        [.sessionNotFound, .sessionExpired, .sessionClosed, .fileGone].contains(code)
    }

    /// True when the concatenation can never succeed.
    fileprivate var endsComposition: Bool { meansGone || code == .fileTooLarge }
}
