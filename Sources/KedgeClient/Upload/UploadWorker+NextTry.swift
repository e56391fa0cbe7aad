internal import KedgeModel
internal import KedgeTransport

// Recovery from a failed chunk request.
extension UploadWorker {
    /// Decides where to continue sending, and waits as long as necessary.
    ///
    /// - Returns: True if the server has the chunk after all.
    func prepareNextTry(
        of chunk: PreparedChunk, after failed: FailedPut, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let failure = failed.failure
        if failure.isCanceled { throw CancellationError() }
        if failure.transport?.kind == .bodyUnreadable { try await source.verifyUnchanged() }
        switch failure.code {
        case .sessionNotFound, .sessionExpired:
            throw sessionGone(failure)
        case .sessionClosed:
            throw SessionTrouble(remedy: .reconcile, failure: failure)
        case .chunkConflict:
            // The server has other bytes for this index, usually because the file has changed.
            try await source.verifyUnchanged()
            if unproven.contains(chunk.index) { throw SourceChanged(current: nil) }
            throw SessionTrouble(remedy: .fromScratch, failure: failure)
        case .chunkHashMismatch:
            // The server discarded its bytes of this chunk only.
            attempt.start = 0
            attempt.isAsking = false
            attempt.mismatchCount += 1
            if let actual = failure.problem?.actualSha256 {
                let mismatch = DigestMismatch(
                    chunk: chunk.index, expectedSha256: chunk.digest, actualSha256: actual)
                try await context.store.recordMismatch(mismatch, of: context.lease)
            }
            if attempt.mismatchCount >= 3 { try await source.verifyUnchanged() }
            try await context.coordinator.backOff(after: failure, chunk: chunk.index)
            return false
        case .offsetMismatch:
            return try await continueAtExpectedOffset(of: chunk, after: failure, &attempt)
        case .rangeMismatch where failed.part.end < chunk.range.byteCount:
            attempt.isWhole = true
            return false
        default:
            if failure.isBodyRefused { return try sendLess(after: failed, &attempt) }
            return try await findOut(of: chunk, after: failed, &attempt)
        }
    }

    /// Continues with smaller bodies after an intermediary refused one as too large.
    private func sendLess(after failed: FailedPut, _ attempt: inout ChunkAttempt) throws -> Bool {
        let byteCount = failed.part.byteCount
        guard takesPartialBodies, attempt.pieces.recordRefusal(of: byteCount) else {
            throw failed.failure.refusing(byteCount)
        }
        pieces = attempt.pieces
        return false
    }

    /// Handles a failure that does not report the chunk's state.
    private func findOut(
        of chunk: PreparedChunk, after failed: FailedPut, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let failure = failed.failure
        if failed.mayBeCutShort, attempt.cutShortCount < RequestFailure.maxCutShortCount {
            attempt.cutShortCount += 1
            if !attempt.isAsking { attempt.ask(after: failed.part, isLost: true) }
            return false
        }
        if attempt.isAsking {
            attempt.isReachable = false
            try await context.coordinator.backOff(after: failure, chunk: chunk.index)
            return false
        }
        guard failure.isRetryable else { throw failure }
        if failed.isUnanswered { return try await askForAnswer(of: chunk, after: failed, &attempt) }
        // The service, or an intermediary that passed bytes to it, reports an outage.
        let isOutage = failure.isOutage && failure.answer != nil
        guard failure.isInterrupted || isOutage, failed.sentByteCount > 0 else {
            try await context.coordinator.backOff(after: failure, chunk: chunk.index)
            // No byte reached the service: no need to ask.
            if failure.isOutage { return false }
            return try await apply(standing(of: chunk.index), of: chunk, to: &attempt) == .done
        }
        attempt.ask(
            after: failed.part, isLost: failure.problem == nil, isAnswered: failure.answer != nil)
        guard attempt.hasAskedAtOnce || failure.problem != nil else {
            attempt.hasAskedAtOnce = true
            return false
        }
        try await context.coordinator.backOff(
            after: failure, chunk: chunk.index, isReachable: attempt.isReachable)
        return false
    }

    /// Requests the chunk's status after its whole body was sent. The server may be about to commit
    /// the chunk, and a probe would stop that.
    private func askForAnswer(
        of chunk: PreparedChunk, after failed: FailedPut, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let standing = try await standing(of: chunk.index)
        if case .partial(let byteCount) = standing, byteCount <= attempt.furthest {
            attempt.ask(after: failed.part, isLost: true)
            try await context.coordinator.backOff(
                after: failed.failure, chunk: chunk.index, isReachable: true)
            return false
        }
        return try await apply(standing, of: chunk, to: &attempt) == .done
    }

    /// Continues at the offset that the server expects. Usually more bytes arrived than its last
    /// answer could report.
    private func continueAtExpectedOffset(
        of chunk: PreparedChunk, after failure: RequestFailure, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let standing: ChunkStanding
        // Checked before any computation: the server may send any number.
        if let expected = failure.problem?.expectedOffset,
            (chunk.range.start..<chunk.range.end).contains(expected)
        {
            standing = .partial(expected - chunk.range.start)
        } else {
            standing = try await self.standing(of: chunk.index)
        }
        let hasAsked = attempt.isAsking
        attempt.isReachable = hasAsked
        let outcome = try await apply(standing, of: chunk, to: &attempt)
        guard outcome == .nothingNew else { return outcome == .done }
        if hasAsked {
            try await context.coordinator.noteAnswer()
        } else {
            // A new offset is no failure, unless it repeatedly brings no progress.
            attempt.idleAnswerCount += 1
            if attempt.idleAnswerCount > 2 {
                try await context.coordinator.backOff(after: failure, chunk: chunk.index)
            }
        }
        return false
    }

    enum Outcome {
        case done
        case furtherAlong
        case nothingNew
    }

    /// Continues at the server's state.
    func apply(
        _ standing: ChunkStanding, of chunk: PreparedChunk, to attempt: inout ChunkAttempt
    ) async throws -> Outcome {
        guard case .partial(let byteCount) = standing else { return .done }
        guard attempt.resume(at: byteCount) else { return .nothingNew }
        try await context.coordinator.noteProgress(chunk: chunk.index)
        return .furtherAlong
    }
}
