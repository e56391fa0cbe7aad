package import KedgeModel

/// Decides how to go on after each failed request that appends bytes to an upload.
///
/// A value without clock and I/O: the worker reports events and performs the actions. Ranges and
/// offsets start at the file's first byte.
package struct SequentialSendState: Sendable, Equatable {
    package typealias Failure = ChunkSendState.Failure

    /// Limit of consecutive size refusals. More than enough halvings to reach the smallest body;
    /// bounds a server that asks for larger bodies in between.
    private static let maxRefusalCount = 16

    /// Size of the next request's body.
    package var bodySize: AdaptiveBodySize
    /// Consecutive bodies with a checksum mismatch.
    private var mismatchCount = 0
    /// Consecutive bodies that were refused as too large.
    private var refusalCount = 0
    /// Consecutive requests that an intermediary answered as if their bodies had broken off.
    private var cutShortCount = 0
    /// Reason of the latest state request.
    private var doubt = Doubt.offset

    /// Reason for a state request.
    private enum Doubt: Sendable, Equatable {
        /// The offset to go on at is unknown.
        case offset
        /// The server refused bytes that it may already have, because an answer was lost.
        case arrival(since: Int64, otherwise: Reason)
        /// The body of this range may have arrived in part.
        case survival(of: ByteRange, Break)
    }

    /// The facts of a request that may have ended inside its body.
    private struct Break: Sendable, Equatable {
        /// False if the server only refused the offset.
        let isBroken: Bool
        /// True if an intermediary may have received only a part of the body.
        let isCutShort: Bool
        /// True if an intermediary answered the request.
        let isAnswered: Bool
    }

    /// Starts without failures.
    package init(bodySize: AdaptiveBodySize) { self.bodySize = bodySize }

    /// Ends all series of failures, because the server has more bytes than ever before.
    package mutating func recordProgress() {
        (mismatchCount, refusalCount, cutShortCount) = (0, 0, 0)
    }

    /// Returns the actions that an event causes, in order.
    ///
    /// The last one requests the state, goes on or gives up. The first has an event as its result,
    /// the others end the recovery from the failure.
    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .failed(let failure, let range, let acknowledged):
            if failure.isCanceled { return [.giveUp(.canceled)] }
            let checks: [Action] = failure.isBodyUnreadable ? [.verifySource] : []
            return checks + actions(after: failure, of: range, acknowledged: acknowledged)
        case .state(let offset, let isComplete):
            return goOn(at: offset, isComplete: isComplete)
        }
    }
}

// Recovery from a failed request.
extension SequentialSendState {
    private mutating func actions(
        after failure: Failure, of range: ByteRange, acknowledged: Int64
    ) -> [Action] {
        switch failure.code {
        case .sessionClosed, .sessionNotFound, .sessionExpired:
            return [.giveUp(.uploadGone)]
        case .integrityMismatch:
            return [.giveUp(.otherBytes)]
        case .uploadChecksumMismatch, .chunkHashMismatch:
            // The server discarded this body only.
            mismatchCount += 1
            let checks: [Action] = mismatchCount >= 3 ? [.verifySource] : []
            return checks + findOut(after: failure, of: range, acknowledged: acknowledged)
        case .fileTooLarge, .requestTooLarge:
            return sendLess(after: failure, of: range, acknowledged: acknowledged)
        default:
            return findOut(after: failure, of: range, acknowledged: acknowledged)
        }
    }

    /// Continues with smaller bodies after the server or an intermediary refused one as too large.
    private mutating func sendLess(
        after failure: Failure, of range: ByteRange, acknowledged: Int64
    ) -> [Action] {
        refusalCount += 1
        guard refusalCount <= Self.maxRefusalCount, bodySize.recordRefusal(of: range.byteCount)
        else {
            return look(
                after: failure, since: acknowledged,
                otherwise: .bodyRefused(byteCount: range.byteCount))
        }
        doubt = .offset
        return [.requestState]
    }

    /// Handles a failure that does not report the upload's state.
    private mutating func findOut(
        after failure: Failure, of range: ByteRange, acknowledged: Int64
    ) -> [Action] {
        let isCutShort = failure.mayBeCutShort && cutShortCount < RequestFailure.maxCutShortCount
        if isCutShort { cutShortCount += 1 }
        guard failure.isRetryable || isCutShort else {
            return look(after: failure, since: acknowledged, otherwise: .permanentFailure)
        }
        // A server that refuses a request and then reports the upload's state is not down.
        let isBroken =
            failure.isInterrupted || isCutShort || failure.isOutage && failure.hasAnswer
        guard isBroken || failure.code == .offsetMismatch else {
            if failure.isCongestion { bodySize.recordCongestion() }
            doubt = .offset
            return [.wait(isReachable: false), .requestState]
        }
        let end = Break(
            isBroken: isBroken, isCutShort: isCutShort,
            isAnswered: failure.hasAnswer && !isCutShort)
        doubt = .survival(of: range, end)
        return [.requestState]
    }

    /// Checks whether the bytes arrived despite a refusal: if an answer was lost, the server
    /// refuses bytes that it already has.
    private mutating func look(
        after failure: Failure, since offset: Int64, otherwise reason: Reason
    ) -> [Action] {
        guard failure.hasAnswer else { return [.giveUp(reason)] }
        doubt = .arrival(since: offset, otherwise: reason)
        return [.requestState]
    }

    /// Continues at the state that the server reported, if that is progress.
    private mutating func goOn(at offset: Int64, isComplete: Bool) -> [Action] {
        switch doubt {
        case .offset:
            return [.goOn]
        case .arrival(let before, let reason):
            return isComplete || offset > before ? [.goOn] : [.giveUp(reason)]
        case .survival(let range, let end):
            if end.isBroken {
                // With a checksum, a server keeps nothing of a broken body. This is no sign that it
                // was unreachable.
                let isAnswered = end.isAnswered && !bodySize.carriesChecksum
                bodySize.recordBreak(
                    of: range.byteCount, survived: max(0, offset - range.start),
                    isAnswered: isAnswered)
            }
            if isComplete || offset > range.start || end.isCutShort { return [.goOn] }
            doubt = .offset
            return [.wait(isReachable: true), .requestState]
        }
    }
}

extension SequentialSendState {
    /// An event after a request failed.
    package enum Event: Sendable, Equatable {
        /// The request with these bytes of the file failed, after the server had acknowledged some
        /// bytes.
        case failed(Failure, ByteRange, acknowledged: Int64)
        /// The server reported the upload's state.
        case state(offset: Int64, isComplete: Bool)
    }

    /// An action of the worker.
    package enum Action: Sendable, Equatable {
        /// Check that the file is unchanged.
        case verifySource
        /// Wait as the failure requires.
        ///
        /// - Parameter isReachable: Whether the server has answered another request since.
        case wait(isReachable: Bool)
        /// Request the upload's state from the server.
        case requestState
        /// Go on from the state that the server reported last.
        case goOn
        /// End with an error.
        case giveUp(Reason)
    }

    /// Reason to give up.
    package enum Reason: Sendable, Equatable {
        /// The task was canceled.
        case canceled
        /// The upload does not exist any more, or accepts no more bytes.
        case uploadGone
        /// The server has other bytes than the file.
        case otherBytes
        /// Bodies of this size are refused, and smaller ones are not possible.
        case bodyRefused(byteCount: Int64)
        /// No retry can cure the failure.
        case permanentFailure
    }
}
