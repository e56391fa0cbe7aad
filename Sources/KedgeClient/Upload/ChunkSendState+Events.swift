package import KedgeModel

extension ChunkSendState {
    /// An event in the life of a chunk.
    package enum Event: Sendable, Equatable {
        /// The worker has read the chunk.
        case start
        /// The server has stored the whole chunk.
        case stored(duration: Duration)
        /// The server has stored this many bytes of the chunk, and at least those of the request.
        case accepted(byteCount: Int64, duration: Duration)
        /// The server reported success, but the content of its answer contradicts the request.
        case contradicted(Failure, duration: Duration)
        /// The request failed.
        case failed(Failure)
        /// The server reported the chunk's state.
        case status(ChunkStatus)
    }

    /// An action of the worker.
    package enum Action: Sendable, Equatable {
        /// Send these bytes of the chunk. If `asksFirst`, the body waits for the server's consent.
        case send(ByteRange, asksFirst: Bool)
        /// Request the chunk's state from the server.
        case requestStatus
        /// Wait as the latest failure requires.
        ///
        /// - Parameter isReachable: Whether the server has answered another request since.
        case wait(isReachable: Bool)
        /// Check that the file is unchanged.
        case verifySource
        /// Record that the server computed another digest than the client.
        case recordMismatch(actual: SHA256Digest)
        /// Record that the server has more bytes than ever before.
        case noteProgress
        /// Record that the server answered.
        case noteAnswer
        /// Start other chunks with this size.
        case adoptBodySize(AdaptiveBodySize)
        /// Record that the server has the chunk, after this many tries that are not recorded yet.
        case confirm(tries: Int)
        /// End with an error.
        case giveUp(Reason)
    }

    /// Reason to give up a chunk.
    package enum Reason: Sendable, Equatable {
        /// The task was canceled.
        case canceled
        /// The session does not exist any more.
        case sessionGone
        /// The session accepts no more chunks.
        case sessionClosed
        /// The file is not the one of which the server has chunks.
        case sourceChanged
        /// The server has other bytes than the file.
        case otherBytes
        /// An intermediary refuses bodies of this size, and smaller ones are not possible.
        case bodyRefused(byteCount: Int64)
        /// No retry can cure the failure.
        case permanentFailure
    }

    /// The facts of a failed request that decide how to go on.
    package struct Failure: Sendable, Equatable {
        let code: ErrorCode
        let isCanceled: Bool
        let isBodyUnreadable: Bool
        let isRetryable: Bool
        let isOutage: Bool
        let isInterrupted: Bool
        let isCongestion: Bool
        let isBodyRefused: Bool
        /// True for an answer that may only mean that the body broke off before the responder.
        let mayBeCutShort: Bool
        let hasAnswer: Bool
        let hasProblem: Bool
        /// Offset in the file that the server expects; it may be any number.
        let expectedOffset: Int64?
        let actualSHA256: SHA256Digest?
        /// Bytes of the body that were passed to the connection.
        let sentByteCount: Int64

        /// Extracts the facts of a failure.
        ///
        /// - Parameter sentByteCount: Bytes of the body that were passed to the connection.
        package init(_ failure: RequestFailure, sentByteCount: Int64) {
            code = failure.code
            isCanceled = failure.isCanceled
            isBodyUnreadable = failure.transport?.kind == .bodyUnreadable
            isRetryable = failure.isRetryable
            isOutage = failure.isOutage
            isInterrupted = failure.isInterrupted
            isCongestion = failure.isCongestion
            isBodyRefused = failure.isBodyRefused
            mayBeCutShort = failure.mayBeCutShort && sentByteCount > 0
            hasAnswer = failure.answer != nil
            hasProblem = failure.problem != nil
            expectedOffset = failure.problem?.expectedOffset
            actualSHA256 = failure.problem?.actualSha256
            self.sentByteCount = sentByteCount
        }
    }
}
