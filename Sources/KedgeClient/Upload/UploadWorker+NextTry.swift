internal import KedgeModel

// What follows on a request for a chunk that failed.
extension UploadWorker {
    /// Decides from where to send next, and waits as long as it must.
    ///
    /// - Returns: True when the server has the chunk after all.
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
            // The server has other bytes for this index: usually because the file changed (R123).
            try await source.verifyUnchanged()
            if unproven.contains(chunk.index) { throw SourceChanged(current: nil) }
            throw SessionTrouble(remedy: .fromScratch, failure: failure)
        case .chunkHashMismatch:
            // The server dropped what it had of this chunk; nothing else is lost (R16).
            attempt.start = 0
            attempt.isAsking = false
            attempt.mismatchCount += 1
            if let actual = failure.problem?.actualSha256 {
                let mismatch = DigestMismatch(
                    chunk: chunk.index, expectedSha256: chunk.digest, actualSha256: actual)
                try await context.store.recordMismatch(mismatch, of: context.lease)
            }
            if attempt.mismatchCount >= 3 { try await source.verifyUnchanged() }
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
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

    /// The body is larger than something before the service takes: a smaller one may pass.
    private func sendLess(after failed: FailedPut, _ attempt: inout ChunkAttempt) throws -> Bool {
        let byteCount = failed.part.byteCount
        guard takesPartialBodies, attempt.pieces.recordRefusal(of: byteCount) else {
            throw failed.failure.refusing(byteCount)
        }
        pieces = attempt.pieces
        return false
    }

    /// The failure says nothing of where the chunk stands.
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
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
            return false
        }
        guard failure.isRetryable else { throw failure }
        if failed.isUnanswered { return try await askForAnswer(of: chunk, after: failed, &attempt) }
        // The service itself says so, and others say it of the service after they sent bytes to it.
        let isOutage = failure.isOutage && failure.answer != nil
        guard failure.isInterrupted || isOutage, failed.sentByteCount > 0 else {
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
            // No byte went to the service: no need to ask.
            if failure.isOutage { return false }
            return try await apply(standing(of: chunk.index), of: chunk, to: &attempt) == .done
        }
        attempt.ask(
            after: failed.part, isLost: failure.problem == nil, isAnswered: failure.answer != nil)
        guard attempt.hasAskedAtOnce || failure.problem != nil else {
            attempt.hasAskedAtOnce = true
            return false
        }
        try await context.keeper.backOff(
            after: failure, chunk: chunk.index, isReachable: attempt.isReachable)
        return false
    }

    /// All was sent: the server may be about to commit it, which a question would stop.
    private func askForAnswer(
        of chunk: PreparedChunk, after failed: FailedPut, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let standing = try await standing(of: chunk.index)
        if case .partial(let byteCount) = standing, byteCount <= attempt.furthest {
            attempt.ask(after: failed.part, isLost: true)
            try await context.keeper.backOff(
                after: failed.failure, chunk: chunk.index, isReachable: true)
            return false
        }
        return try await apply(standing, of: chunk, to: &attempt) == .done
    }

    /// The server named the byte it expects; usually more arrived than the last answer could say.
    private func continueAtExpectedOffset(
        of chunk: PreparedChunk, after failure: RequestFailure, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let standing: ChunkStanding
        // Compared before anything is computed with it: it may be any number.
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
            try await context.keeper.noteAnswer()
        } else {
            // To be told where to go on is no failure, unless it leads nowhere again and again.
            attempt.idleAnswerCount += 1
            if attempt.idleAnswerCount > 2 {
                try await context.keeper.backOff(after: failure, chunk: chunk.index)
            }
        }
        return false
    }

    enum Outcome {
        case done
        case furtherAlong
        case nothingNew
    }

    /// Goes on where the server is.
    func apply(
        _ standing: ChunkStanding, of chunk: PreparedChunk, to attempt: inout ChunkAttempt
    ) async throws -> Outcome {
        guard case .partial(let byteCount) = standing else { return .done }
        guard attempt.resume(at: byteCount) else { return .nothingNew }
        try await context.keeper.noteProgress(chunk: chunk.index)
        return .furtherAlong
    }
}
