internal import KedgeLocks
package import KedgeModel
internal import Logging

/// How far an upload that is made of others has come.
package enum Composition: Sendable {
    case file(FileRecord)
    /// Parts are missing bytes, or the bytes are being copied.
    ///
    /// - Parameter byteCount: The size that it will have; nil while that is not known.
    case waiting(byteCount: Int64?)
}

// Uploads that are made of others: clients send the parts of a file side by side, each as an upload of its
// own. The whole is made in the background, by one node, as soon as every part has its bytes, and whoever dies.
extension TransferEngine {
    /// The file that a session made of others becomes. Begins to make it when every part is whole.
    ///
    /// Asking keeps the session and its open parts from expiring.
    ///
    /// - Parameter patience: How long to wait for a file that can be made now. The making goes on afterwards.
    /// - Precondition: The session has parts.
    /// - Throws: `SESSION_EXPIRED` when it or a part is gone, `FILE_GONE` when its file was deleted,
    ///   `FILE_TOO_LARGE`; what ``uploadView(of:owner:stopsAppend:)`` throws.
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

    /// Tells that a session has all its bytes: what it was the last missing part of is made now.
    ///
    /// - Parameter patience: How long to wait for that, over all.
    package func completedPart(
        _ part: SessionID, owner: OwnerID, patience: Duration = .zero
    ) async {
        var left = patience
        for id in waitingCompositions.waiting(for: part, owner: owner) {
            left -= await parts.timer.measure {
                do {
                    _ = try await compose(id, owner: owner, patience: left)
                } catch {
                    // The part is durable, and that is what was asked for. Whoever asks for the whole learns
                    // why there is none.
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

    /// Looks, beside the request that made a session a file, at what waits for it.
    func lookAtWholes(of part: SessionID, owner: OwnerID) {
        guard !waitingCompositions.waiting(for: part, owner: owner).isEmpty else { return }
        compositionChecks.start(part) { [self] in await completedPart(part, owner: owner) }
    }

    /// Waits until this node has made the file or given up, or, while another one makes it, for a second.
    ///
    /// - Returns: How long that was.
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
        // With all the bytes it needs its parts no more.
        if view.state == .finalizing || view.fileSize == view.offset {
            beginComposing(id, of: ids, owner: owner)
            return (.waiting(byteCount: view.fileSize), true)
        }
        // First, so that a part that becomes whole from here on finds it.
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

    /// - Returns: The size of all together, if it is known, and whether all of their bytes are here.
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

// The making, and what brings it about when nobody asks.
extension TransferEngine {
    private func beginComposing(_ id: SessionID, of ids: [SessionID], owner: OwnerID) {
        backgroundFinalizes.start(id) { [self] in
            do {
                // Few at a time, and beside the limit of bodies: copying must not keep anybody from uploading.
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

    /// Fills the session and makes the file, unless another node is at it.
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

    /// So that the session can expire. A failure here leaves that to housekeeping.
    private func dropPromise(of id: SessionID) async {
        try? await parts.metadata.dropFinalize(of: id, by: workLease)
    }

    /// Goes on with what no request asks for: sessions whose last part came when nobody here knew that they
    /// waited, and those that a crash interrupted. Some of them each time, in turn.
    func composeLeftBehind() async throws {
        let batch = try await parts.metadata.openCompositions(
            after: lastComposition.withLock { $0 }, limit: 100)
        lastComposition.withLock { $0 = batch.count == 100 ? batch.last?.id : nil }
        for record in batch where !isEnding { await goOnComposing(record) }
    }

    /// Begins to make a session that can be made, and lets one that cannot expire.
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
    /// True when what was asked for is over, or never was.
    fileprivate var meansGone: Bool {
        [.sessionNotFound, .sessionExpired, .sessionClosed, .fileGone].contains(code)
    }

    /// True when there never will be a whole.
    fileprivate var endsComposition: Bool { meansGone || code == .fileTooLarge }
}
