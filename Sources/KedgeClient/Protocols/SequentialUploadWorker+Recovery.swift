internal import KedgeModel

extension SequentialUploadWorker {
    /// Determines where to continue after a failed request, and waits as long as necessary.
    ///
    /// - Throws: ``UploadTrouble`` if the upload is gone; the failure if a retry cannot help.
    func goOn(
        after failure: RequestFailure, of range: ByteRange, sentByteCount: Int64,
        to address: UploadAddress
    ) async throws -> UploadState {
        var latest: UploadState?
        var event: SequentialSendState.Event? = .failed(
            SequentialSendState.Failure(failure, sentByteCount: sentByteCount), range,
            acknowledged: acknowledged)
        while let current = event {
            event = nil
            for action in sendState.handle(current) {
                switch action {
                case .verifySource:
                    try await source.verifyUnchanged()
                case .wait(let isReachable):
                    try await backOff(after: failure, isReachable: isReachable)
                case .requestState:
                    let state = try await lookAgain(address)
                    latest = state
                    event = .state(offset: state.offset, isComplete: state.isComplete)
                case .goOn:
                    break
                case .giveUp(let reason):
                    throw error(for: reason, after: failure)
                }
            }
        }
        guard let latest else {
            preconditionFailure("an upload goes on only from a state that the server reported")
        }
        return latest
    }

    private func error(
        for reason: SequentialSendState.Reason, after failure: RequestFailure
    ) -> any Error {
        switch reason {
        case .canceled: CancellationError()
        case .uploadGone: trouble(failure)
        case .otherBytes: UploadTrouble(remedy: .fromScratch, failure: failure)
        case .bodyRefused(let byteCount): failure.refusing(byteCount)
        case .permanentFailure: failure
        }
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
}
