internal import KedgeModel

/// State of sending one chunk.
struct ChunkAttempt: Sendable {
    /// Next byte to send, counted from the start of the chunk.
    var start: Int64
    /// Size of the next request's body.
    var pieces: AdaptiveBodySize
    /// Attempts not yet counted by ``RetryCoordinator``: the current one, and those with progress.
    var uncountedTries = 1
    var mismatchCount = 0
    /// Furthest start so far. Only bytes beyond it are progress.
    var furthest: Int64
    /// Consecutive answers with another start but without progress.
    var idleAnswerCount = 0
    /// True from the second attempt on: the server may know a better start, so it is asked before
    /// the body is sent.
    var isRepeated = false
    /// True while the client does not know how much of a broken body the server has.
    var isAsking = false
    /// Size of that body, if its bytes may be lost.
    var brokenByteCount: Int64?
    /// True if an intermediary answered that body.
    var isBreakAnswered = false
    /// True after one probe without delay since the last progress.
    var hasAskedAtOnce = false
    /// True if the last probe was answered.
    var isReachable = false
    /// Consecutive answers that may mean that the body broke off before the responder.
    var cutShortCount = 0
    /// True if the server accepts this chunk only as a whole.
    var isWhole = false

    init(start: Int64, pieces: AdaptiveBodySize) {
        self.start = start
        self.furthest = start
        self.pieces = pieces
    }

    /// Returns the range of the next request, counted from the start of the chunk.
    ///
    /// To probe for the server's offset, the request carries only the chunk's last byte. Unless
    /// that is the only missing byte, the server answers with the offset to continue at. It does so
    /// after it has ended the previous request and saved that request's bytes. A proxy cannot
    /// answer in its place, as it can with `Expect`. A status request could be answered before the
    /// bytes are saved.
    func nextPart(ofChunk byteCount: Int64, takesParts: Bool) -> ByteRange {
        if isAsking { return ByteRange(start: byteCount - 1, end: byteCount) }
        guard takesParts, !isWhole else { return ByteRange(start: start, end: byteCount) }
        return pieces.range(from: start, ofSize: byteCount)
    }

    /// Requires a probe, because a body broke and the server may have part of it.
    ///
    /// - Parameters:
    ///   - isLost: Bytes of the body may be lost on the way.
    ///   - isAnswered: An intermediary answered the request.
    mutating func ask(after part: ByteRange, isLost: Bool, isAnswered: Bool = false) {
        guard !isAsking else { return }
        isAsking = true
        isBreakAnswered = isAnswered
        if isLost { brokenByteCount = part.byteCount }
    }

    /// Continues at the offset in the chunk that the server reported.
    ///
    /// - Returns: True if that is further than ever before.
    mutating func resume(at byteCount: Int64) -> Bool {
        if let broken = brokenByteCount {
            pieces.recordBreak(
                of: broken, survived: max(0, byteCount - start), isAnswered: isBreakAnswered)
            brokenByteCount = nil
        }
        isAsking = false
        start = byteCount
        guard byteCount > furthest else { return false }
        furthest = byteCount
        (idleAnswerCount, cutShortCount) = (0, 0)
        hasAskedAtOnce = false
        uncountedTries += 1
        return true
    }
}

/// A failed request for a chunk.
struct FailedPut: Sendable {
    let failure: RequestFailure
    /// Range of its body, counted from the start of the chunk.
    let part: ByteRange
    /// Bytes of the body that were passed to the connection.
    let sentByteCount: Int64

    /// True for an answer that may only mean that the body broke off before the responder.
    var mayBeCutShort: Bool { failure.mayBeCutShort && sentByteCount > 0 }

    /// True if the whole body was sent, so that only the answer may be missing.
    var isUnanswered: Bool { failure.isInterrupted && sentByteCount == part.byteCount }
}
