internal import KedgeModel
internal import KedgeTransport

extension SequentialUploadWorker {
    /// Limit of consecutive size refusals. More than enough halvings to reach the smallest body;
    /// bounds a server that asks for larger bodies in between.
    private static let maxRefusalCount = 16

    /// Determines where to continue after a failed request, and waits as long as necessary.
    ///
    /// - Throws: ``UploadTrouble`` if the upload is gone; the failure if a retry cannot help.
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
            // The server discarded this body only.
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
        // A server that refuses a request and then reports the upload's state is not down.
        let isBroken =
            failure.isInterrupted || isCutShort || failure.isOutage && failure.answer != nil
        if isBroken || failure.code == .offsetMismatch {
            let state = try await lookAgain(address)
            if isBroken {
                // With a checksum, a server keeps nothing of a broken body. This is no sign that it
                // was unreachable.
                let isAnswered =
                    failure.answer != nil && !isCutShort && !bodySize.carriesChecksum
                bodySize.recordBreak(
                    of: range.byteCount, survived: max(0, state.offset - range.start),
                    isAnswered: isAnswered)
            }
            if state.isNews(since: range.start) || isCutShort { return state }
            try await backOff(after: failure, isReachable: true)
        } else {
            if failure.isCongestion { bodySize.recordCongestion() }
            try await backOff(after: failure)
        }
        return try await lookAgain(address)
    }

    /// Waits after a request without progress, which counts as an attempt of its chunk.
    func backOff(after failure: RequestFailure, isReachable: Bool = false) async throws {
        uncountedTries = 0
        try await context.coordinator.backOff(
            after: failure, chunk: chunk, isReachable: isReachable)
    }

    /// Returns the current state, from which to continue.
    private func lookAgain(_ address: UploadAddress) async throws -> UploadState {
        do {
            return try await stateAtServer(address)
        } catch let failure as RequestFailure where Self.isGone(failure) {
            throw trouble(failure)
        }
    }

    /// Checks whether the bytes arrived despite a refusal: if an answer was lost, the server
    /// refuses bytes that it already has.
    private func look(
        after failure: RequestFailure, at address: UploadAddress
    ) async throws -> UploadState {
        guard failure.answer != nil else { throw failure }
        let before = acknowledged
        let state = try await lookAgain(address)
        guard state.isNews(since: before) else { throw failure }
        return state
    }

    /// Continues with smaller bodies after the server or an intermediary refused one as too large.
    private func sendLess(
        after failure: RequestFailure, of range: ByteRange, to address: UploadAddress
    ) async throws -> UploadState {
        refusalCount += 1
        guard refusalCount <= Self.maxRefusalCount, bodySize.recordRefusal(of: range.byteCount)
        else {
            return try await look(after: failure.refusing(range.byteCount), at: address)
        }
        return try await lookAgain(address)
    }
}

extension UploadState {
    /// Whether continuing from this state is progress.
    fileprivate func isNews(since offset: Int64) -> Bool { isComplete || self.offset > offset }
}
