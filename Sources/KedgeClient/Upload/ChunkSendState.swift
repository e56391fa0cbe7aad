package import KedgeModel

/// Decides how to send one chunk, and how to go on after each failure.
///
/// A value without clock and I/O: the worker reports events and performs the actions. Byte counts
/// and ranges start at the chunk's first byte.
package struct ChunkSendState: Sendable, Equatable {
    /// Range of the chunk in the file.
    private let chunk: ByteRange
    /// True if the server accepts bodies that end before their chunk.
    private let takesParts: Bool
    /// True if the server has a chunk with this index, but possibly with other bytes.
    private let isUnproven: Bool
    /// Next byte to send.
    private var start: Int64
    /// Size of the next request's body.
    private var bodySize: AdaptiveBodySize
    /// Range of the latest request's body.
    private var part: ByteRange
    /// Attempts not yet counted by ``RetryCoordinator``: the current one, and those with progress.
    private var uncountedTries = 1
    private var mismatchCount = 0
    /// Furthest start so far. Only bytes beyond it are progress.
    private var furthest: Int64
    /// Consecutive answers with another start but without progress.
    private var idleAnswerCount = 0
    /// True from the second attempt on: the server may know a better start, so it is asked before
    /// the body is sent.
    private var isRepeated: Bool
    /// True while the client does not know how much of a broken body the server has.
    private var isProbing = false
    /// Size of that body, if its bytes may be lost.
    private var brokenByteCount: Int64?
    /// True if an intermediary answered that body.
    private var isBreakAnswered = false
    /// True after one probe without delay since the last progress.
    private var hasProbedAtOnce = false
    /// True if the last probe was answered.
    private var isReachable = false
    /// Consecutive answers that may mean that the body broke off before the responder.
    private var cutShortCount = 0
    /// True if the server accepts this chunk only as a whole.
    private var isWhole = false
    /// Reason of the latest status request.
    private var doubt = Doubt.failure

    /// Reason for a status request.
    private enum Doubt {
        /// The whole body was sent, and no answer arrived.
        case missingAnswer
        /// The server expects another offset, and did not name a usable one.
        case offsetMismatch
        /// The request failed for a reason that says nothing about the chunk.
        case failure
    }

    /// Creates the state of a chunk that is not being sent yet.
    ///
    /// - Parameters:
    ///   - chunk: Range of the chunk in the file.
    ///   - start: Number of bytes that the server already has.
    ///   - bodySize: Size of the first request's body.
    ///   - takesParts: Whether the server accepts bodies that end before their chunk.
    ///   - isUnproven: Whether the server has a chunk with this index, but possibly with other
    ///     bytes.
    package init(
        _ chunk: ByteRange, start: Int64, bodySize: AdaptiveBodySize, takesParts: Bool,
        isUnproven: Bool
    ) {
        self.chunk = chunk
        self.takesParts = takesParts
        self.isUnproven = isUnproven
        self.start = start
        self.bodySize = bodySize
        part = ByteRange(start: start, end: chunk.byteCount)
        furthest = start
        isRepeated = isUnproven
    }

    /// Returns the actions that an event causes, in order.
    ///
    /// The last one sends, requests the status, confirms or gives up. The first two have an event
    /// as their result, the others end the chunk.
    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .start:
            return [send()]
        case .stored(let duration):
            bodySize.recordSuccess(in: duration, byteCount: part.byteCount)
            return [.adoptBodySize(bodySize), .confirm(tries: uncountedTries)]
        case .accepted(let byteCount, let duration):
            bodySize.recordSuccess(in: duration, byteCount: part.byteCount)
            isRepeated = false
            return resume(at: byteCount)
        case .contradicted(let failure, let duration):
            bodySize.recordSuccess(in: duration, byteCount: part.byteCount)
            isRepeated = true
            return goOn(after: failure)
        case .failed(let failure):
            isRepeated = true
            return goOn(after: failure)
        case .status(let status):
            return goOn(at: status)
        }
    }
}

// Sending.
extension ChunkSendState {
    private mutating func send() -> Action {
        part = nextPart
        return .send(part, asksFirst: isRepeated)
    }

    /// Range of the next request.
    ///
    /// To probe for the server's offset, the request carries only the chunk's last byte. Unless
    /// that is the only missing byte, the server answers with the offset to continue at. It does so
    /// after it has ended the previous request and saved that request's bytes. A proxy cannot
    /// answer in its place, as it can with `Expect`. A status request could be answered before the
    /// bytes are saved.
    private var nextPart: ByteRange {
        let byteCount = chunk.byteCount
        if isProbing { return ByteRange(start: byteCount - 1, end: byteCount) }
        guard takesParts, !isWhole else { return ByteRange(start: start, end: byteCount) }
        return bodySize.range(from: start, ofSize: byteCount)
    }

    /// Requires a probe, because a body broke and the server may have part of it.
    ///
    /// - Parameters:
    ///   - isLost: Bytes of the body may be lost on the way.
    ///   - isAnswered: An intermediary answered the request.
    private mutating func probe(isLost: Bool, isAnswered: Bool = false) {
        guard !isProbing else { return }
        isProbing = true
        isBreakAnswered = isAnswered
        if isLost { brokenByteCount = part.byteCount }
    }

    /// Continues at the offset that the server reported.
    private mutating func resume(at byteCount: Int64) -> [Action] {
        advance(to: byteCount) ? [.noteProgress, send()] : [send()]
    }

    /// - Returns: True if the offset is further than ever before.
    private mutating func advance(to byteCount: Int64) -> Bool {
        if let broken = brokenByteCount {
            bodySize.recordBreak(
                of: broken, survived: max(0, byteCount - start), isAnswered: isBreakAnswered)
            brokenByteCount = nil
        }
        isProbing = false
        start = byteCount
        guard byteCount > furthest else { return false }
        furthest = byteCount
        (idleAnswerCount, cutShortCount) = (0, 0)
        hasProbedAtOnce = false
        uncountedTries += 1
        return true
    }
}

// Recovery from a failed request.
extension ChunkSendState {
    private mutating func goOn(after failure: Failure) -> [Action] {
        if failure.isCanceled { return [.giveUp(.canceled)] }
        let checks: [Action] = failure.isBodyUnreadable ? [.verifySource] : []
        return checks + actions(after: failure)
    }

    private mutating func actions(after failure: Failure) -> [Action] {
        switch failure.code {
        case .sessionNotFound, .sessionExpired:
            return [.giveUp(.sessionGone)]
        case .sessionClosed:
            return [.giveUp(.sessionClosed)]
        case .chunkConflict:
            // The server has other bytes for this index, usually because the file has changed.
            return [.verifySource, .giveUp(isUnproven ? .sourceChanged : .otherBytes)]
        case .chunkHashMismatch:
            return sendAgain(actual: failure.actualSHA256)
        case .offsetMismatch:
            return continueAtExpectedOffset(after: failure)
        case .rangeMismatch where part.end < chunk.byteCount:
            isWhole = true
            return [send()]
        default:
            return failure.isBodyRefused ? sendLess() : findOut(after: failure)
        }
    }

    /// Starts the chunk over: the server discarded its bytes of this chunk only.
    private mutating func sendAgain(actual: SHA256Digest?) -> [Action] {
        start = 0
        isProbing = false
        mismatchCount += 1
        var actions: [Action] = []
        if let actual { actions.append(.recordMismatch(actual: actual)) }
        if mismatchCount >= 3 { actions.append(.verifySource) }
        return actions + [.wait(isReachable: false), send()]
    }

    /// Continues with smaller bodies after an intermediary refused one as too large.
    private mutating func sendLess() -> [Action] {
        guard takesParts, bodySize.recordRefusal(of: part.byteCount) else {
            return [.giveUp(.bodyRefused(byteCount: part.byteCount))]
        }
        return [.adoptBodySize(bodySize), send()]
    }

    /// Handles a failure that does not report the chunk's state.
    private mutating func findOut(after failure: Failure) -> [Action] {
        if failure.mayBeCutShort, cutShortCount < RequestFailure.maxCutShortCount {
            cutShortCount += 1
            probe(isLost: true)
            return [send()]
        }
        if isProbing {
            isReachable = false
            return [.wait(isReachable: false), send()]
        }
        guard failure.isRetryable else { return [.giveUp(.permanentFailure)] }
        if failure.isInterrupted, failure.sentByteCount == part.byteCount {
            // The server may be about to commit the chunk, and a probe would stop that.
            doubt = .missingAnswer
            return [.requestStatus]
        }
        // The service, or an intermediary that passed bytes to it, reports an outage.
        let isOutage = failure.isOutage && failure.hasAnswer
        guard failure.isInterrupted || isOutage, failure.sentByteCount > 0 else {
            // No byte reached the service: no need to ask.
            if failure.isOutage { return [.wait(isReachable: false), send()] }
            doubt = .failure
            return [.wait(isReachable: false), .requestStatus]
        }
        return probe(after: failure)
    }

    /// Probes at once after the first break since the last progress, and later after a wait.
    private mutating func probe(after failure: Failure) -> [Action] {
        probe(isLost: !failure.hasProblem, isAnswered: failure.hasAnswer)
        guard hasProbedAtOnce || failure.hasProblem else {
            hasProbedAtOnce = true
            return [send()]
        }
        return [.wait(isReachable: isReachable), send()]
    }

    /// Continues at the offset that the server expects. Usually more bytes arrived than its last
    /// answer could report.
    private mutating func continueAtExpectedOffset(after failure: Failure) -> [Action] {
        isReachable = isProbing
        // Checked before any computation: the server may send any number.
        guard let expected = failure.expectedOffset, (chunk.start..<chunk.end).contains(expected)
        else {
            doubt = .offsetMismatch
            return [.requestStatus]
        }
        return resumeAfterMismatch(at: expected - chunk.start)
    }

    private mutating func resumeAfterMismatch(at byteCount: Int64) -> [Action] {
        let hasProbed = isProbing
        if advance(to: byteCount) { return [.noteProgress, send()] }
        if hasProbed { return [.noteAnswer, send()] }
        // A new offset is no failure, unless it repeatedly brings no progress.
        idleAnswerCount += 1
        return idleAnswerCount > 2 ? [.wait(isReachable: false), send()] : [send()]
    }

    /// Continues at the server's state of the chunk.
    private mutating func goOn(at status: ChunkStatus) -> [Action] {
        guard case .partial(let byteCount) = status else {
            // The server has a chunk; only a receipt proves that it is this one.
            return isUnproven
                ? [.wait(isReachable: true), send()] : [.confirm(tries: uncountedTries)]
        }
        switch doubt {
        case .failure:
            return resume(at: byteCount)
        case .offsetMismatch:
            return resumeAfterMismatch(at: byteCount)
        case .missingAnswer:
            guard byteCount <= furthest else { return resume(at: byteCount) }
            probe(isLost: true)
            return [.wait(isReachable: true), send()]
        }
    }
}
