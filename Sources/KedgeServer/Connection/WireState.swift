/// State machine of the requests and responses on a connection. Decides what follows a parser
/// error.
///
/// Requests may be pipelined: the newest one read need not be the one being answered.
struct WireState: Equatable {
    enum AfterFailure: Equatable {
        /// No response is due, or one follows later.
        case nothing
        /// A handler reads the interrupted body and answers.
        case notifyReader
        case refuse
        /// The response has been sent already.
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
    /// Whether the connection is ending and sends nothing more.
    private(set) var isEnding = false

    /// Whether input is processed. Otherwise it is discarded.
    var takesInput: Bool { !isEnding && !hasFailed && (isRequestOpen || !isLastRequest) }

    /// Whether the response that begins now is the last one.
    var isLastAnswer: Bool {
        answeredCount + 1 == begunCount && !owesRefusal && (isLastRequest || hasFailed)
    }

    /// - Parameter isLast: Whether no other request can follow on this connection.
    mutating func requestBegan(isLast: Bool) {
        begunCount += 1
        isRequestOpen = true
        isLastRequest = isLast
    }

    mutating func requestEnded() { isRequestOpen = false }

    /// Records a parser error: the bytes are not a request, or interrupt one.
    mutating func parsingFailed() -> AfterFailure {
        guard takesInput else { return .nothing }
        hasFailed = true
        let isAnswered = answeredCount >= begunCount
        if isRequestOpen { return isAnswered ? .end : .notifyReader }
        owesRefusal = !isAnswered
        return isAnswered ? .refuse : .nothing
    }

    /// Records the end of a response.
    mutating func answered() -> AfterAnswer {
        answeredCount += 1
        guard answeredCount == begunCount else { return .nothing }
        if owesRefusal { return .refuse }
        return hasFailed || (isLastRequest && !isRequestOpen) ? .end : .nothing
    }

    /// - Returns: False when the connection was ending already.
    mutating func beginEnding() -> Bool {
        defer { isEnding = true }
        return !isEnding
    }
}
