internal import KedgeModel

extension SequentialUploadWorker {
    /// Halvings that lead from the largest pieces to the smallest, and some: a server that asks for larger
    /// ones in between would be asked for ever.
    private static let maxRefusalCount = 16

    /// Finds out where to go on after a piece that did not do what it was for, and waits as long as it must.
    ///
    /// - Throws: ``UploadTrouble`` when the upload is gone; the failure when waiting does not cure it.
    func goOn(
        after failure: RequestFailure, of range: ByteRange, sentByteCount: Int64,
        to address: UploadAddress
    ) async throws -> UploadState {
        if failure.isCanceled { throw CancellationError() }
        if failure.transport?.kind == .bodyUnreadable { try await source.verifyUnchanged() }
        switch failure.code {
        case .sessionClosed, .sessionNotFound, .sessionExpired:
            throw trouble(failure)
        case .integrityMismatch:
            throw UploadTrouble(remedy: .fromScratch, failure: failure)
        case .uploadChecksumMismatch, .chunkHashMismatch:
            // Nothing of this piece counts, and nothing else is lost.
            mismatchCount += 1
            if mismatchCount >= 3 { try await source.verifyUnchanged() }
        case .fileTooLarge, .requestTooLarge:
            return try await sendLess(after: failure, of: range, to: address)
        default:
            break
        }
        let isCutShort =
            failure.mayBeCutShort && sentByteCount > 0
            && cutShortCount < RequestFailure.maxCutShortCount
        if isCutShort { cutShortCount += 1 }
        guard failure.isRetryable || isCutShort else {
            return try await look(after: failure, at: address)
        }
        // A server that says it cannot serve now, and then tells where the upload stands, is no outage.
        let isBroken =
            failure.isInterrupted || isCutShort || failure.isOutage && failure.answer != nil
        if isBroken || failure.code == .offsetMismatch {
            let state = try await lookAgain(address)
            if isBroken {
                // A server keeps no part of a body with a checksum, so having none says nothing.
                let isAnswered =
                    failure.answer != nil && !isCutShort && !pieces.carriesChecksum
                pieces.recordBreak(
                    of: range.byteCount, survived: max(0, state.offset - range.start),
                    isAnswered: isAnswered)
            }
            if state.isNews(since: range.start) || isCutShort { return state }
            try await backOff(after: failure, isReachable: true)
        } else {
            if failure.isCongestion { pieces.recordCongestion() }
            try await backOff(after: failure)
        }
        return try await lookAgain(address)
    }

    /// Waits after a piece that brought nothing, which counts as a try of its chunk.
    func backOff(after failure: RequestFailure, isReachable: Bool = false) async throws {
        uncountedTries = 0
        try await context.keeper.backOff(after: failure, chunk: chunk, isReachable: isReachable)
    }

    /// The upload as it is now, for going on.
    private func lookAgain(_ address: UploadAddress) async throws -> UploadState {
        do {
            return try await stateAtServer(address)
        } catch let failure as RequestFailure where Self.isGone(failure) {
            throw trouble(failure)
        }
    }

    /// A refusal that says nothing of the kind may still have come after the bytes counted: an answer was
    /// lost, and the server refuses what it has already.
    private func look(
        after failure: RequestFailure, at address: UploadAddress
    ) async throws -> UploadState {
        guard failure.answer != nil else { throw failure }
        let before = acknowledged
        let state = try await lookAgain(address)
        guard state.isNews(since: before) else { throw failure }
        return state
    }

    /// The body is larger than something on the way takes: a smaller one may pass.
    private func sendLess(
        after failure: RequestFailure, of range: ByteRange, to address: UploadAddress
    ) async throws -> UploadState {
        refusalCount += 1
        guard refusalCount <= Self.maxRefusalCount, pieces.recordRefusal(of: range.byteCount) else {
            return try await look(after: failure.refusing(range.byteCount), at: address)
        }
        return try await lookAgain(address)
    }
}

extension UploadState {
    /// True when going on from here is not doing the same again.
    fileprivate func isNews(since offset: Int64) -> Bool { isComplete || self.offset > offset }
}
