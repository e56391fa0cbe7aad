/// What a connection has read and answered, and what follows when its bytes are no request any more.
///
/// Requests may be pipelined: the newest one read need not be the one being answered.
struct WireState: Equatable {
    enum AfterFailure: Equatable {
        /// Nobody is waiting for an answer, or one comes later.
        case nothing
        /// A handler reads the body that broke off, and answers.
        case tellReader
        case refuse
        /// All has been said already.
        case end
    }

    enum AfterAnswer: Equatable {
        case nothing
        case refuse
        case end
    }

    private var begunCount = 0
    private var answeredCount = 0
    private var isRequestOpen = false
    private var isLastRequest = false
    private var hasFailed = false
    private var owesRefusal = false
    /// True from the moment on from which nothing more is said.
    private(set) var isEnding = false

    /// False when what comes is thrown away.
    var takesInput: Bool { !isEnding && !hasFailed && (isRequestOpen || !isLastRequest) }

    /// Whether the answer that begins now is the last one.
    var isLastAnswer: Bool {
        answeredCount + 1 == begunCount && !owesRefusal && (isLastRequest || hasFailed)
    }

    /// - Parameter isLast: The client wants, or can have, no more on this connection.
    mutating func requestBegan(isLast: Bool) {
        begunCount += 1
        isRequestOpen = true
        isLastRequest = isLast
    }

    mutating func requestEnded() { isRequestOpen = false }

    /// What came is no request, or breaks one off.
    mutating func parsingFailed() -> AfterFailure {
        guard takesInput else { return .nothing }
        hasFailed = true
        let isAnswered = answeredCount >= begunCount
        if isRequestOpen { return isAnswered ? .end : .tellReader }
        owesRefusal = !isAnswered
        return isAnswered ? .refuse : .nothing
    }

    /// An answer has been written to its end.
    mutating func answered() -> AfterAnswer {
        answeredCount += 1
        guard answeredCount == begunCount else { return .nothing }
        if owesRefusal { return .refuse }
        return hasFailed || (isLastRequest && !isRequestOpen) ? .end : .nothing
    }

    /// False when it was ending already.
    mutating func beginEnding() -> Bool {
        defer { isEnding = true }
        return !isEnding
    }
}
