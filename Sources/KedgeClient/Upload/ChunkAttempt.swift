internal import KedgeModel
internal import Synchronization

/// Where sending one chunk stands.
struct ChunkAttempt: Sendable {
    /// First byte to send next, counted from the start of the chunk.
    var start: Int64
    /// How much of the chunk one request carries.
    var pieces: PieceSize
    /// Tries that the retry keeper has not counted: this one, and those that got the chunk further.
    var uncountedTries = 1
    var mismatchCount = 0
    /// The furthest start so far: only what lies beyond it is progress.
    var furthest: Int64
    /// Answers in a row that named another start without getting the chunk further.
    var idleAnswerCount = 0
    /// True from the second try on: the server may know better where to go on, and is asked before
    /// bytes are sent.
    var isRepeated = false
    /// True while it is not known what the server has of a body that broke.
    var isAsking = false
    /// Size of that body, when what it brought may be lost.
    var brokenByteCount: Int64?
    /// True when something before the server answered to it.
    var isBreakAnswered = false
    /// True after one question without a wait since the last progress.
    var hasAskedAtOnce = false
    /// True when the last question was answered.
    var isReachable = false
    /// Answers in a row that may mean that a body broke off before what answered.
    var cutShortCount = 0
    /// True when the server takes no parts of this chunk.
    var isWhole = false

    init(start: Int64, pieces: PieceSize) {
        self.start = start
        self.furthest = start
        self.pieces = pieces
    }

    /// The bytes of the next request, counted from the start of the chunk.
    ///
    /// A question is the chunk's last byte: unless it is the only one that is missing, the server
    /// answers where it goes on, after it has ended the request before and has saved what that
    /// brought. No proxy can answer it instead, as it can `Expect`; and a status asked for now
    /// might be told before the bytes are saved.
    func nextPart(ofChunk byteCount: Int64, takesParts: Bool) -> ByteRange {
        if isAsking { return ByteRange(start: byteCount - 1, end: byteCount) }
        guard takesParts, !isWhole else { return ByteRange(start: start, end: byteCount) }
        return pieces.range(from: start, ofSize: byteCount)
    }

    /// A body broke, and the server has to be asked how much of it arrived.
    ///
    /// - Parameters:
    ///   - isLost: What it brought may be lost on the way.
    ///   - isAnswered: Something before the server answered to it.
    mutating func ask(after part: ByteRange, isLost: Bool, isAnswered: Bool = false) {
        guard !isAsking else { return }
        isAsking = true
        isBreakAnswered = isAnswered
        if isLost { brokenByteCount = part.byteCount }
    }

    /// The server told how many bytes of the chunk it has.
    ///
    /// - Returns: True when that is more than ever before.
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

/// A request for a chunk that did not do what it was for.
struct FailedPut: Sendable {
    let failure: RequestFailure
    /// The bytes that it was to bring, counted from the start of the chunk.
    let part: ByteRange
    /// Bytes of them that were handed to the connection.
    let sentByteCount: Int64

    /// True for an answer that may only mean that the body broke off on its way to what answered.
    var mayBeCutShort: Bool { failure.mayBeCutShort && sentByteCount > 0 }

    /// True when everything was sent, and only the answer may be missing.
    var isUnanswered: Bool { failure.isInterrupted && sentByteCount == part.byteCount }
}

/// Bytes of one request's body that were handed to the connection; told by the transport's thread.
final class SentByteCount: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}
