internal import NIOCore

/// How fast the client of one connection takes an answer. Only the time counts in which bytes wait for it.
struct ReaderPace: Equatable {
    /// Waiting over which the rate is judged. Long, because a client whose receive buffer is full takes nothing
    /// until half of it is free: at 56 kbit/s that can be every ten seconds.
    private let window: TimeAmount
    private var waited = TimeAmount.zero
    private var waitingSince: NIODeadline?
    private var takenAtStart: UInt64?

    init(window: TimeAmount) { self.window = window }

    /// Bytes wait for the client from now on.
    ///
    /// - Parameter taken: Bytes that the client's system has taken on this connection.
    mutating func wait(at now: NIODeadline, taken: @autoclosure () -> UInt64?) {
        if takenAtStart == nil { takenAtStart = taken() }
        if waitingSince == nil { waitingSince = now }
    }

    /// All bytes were taken.
    mutating func stopWaiting(at now: NIODeadline) {
        if let since = waitingSince { waited = waited + (now - since) }
        waitingSince = nil
    }

    /// The answer is over.
    mutating func reset() { self = ReaderPace(window: window) }

    /// - Returns: Bytes a second over the window, once in each; nil before its end and where the number of
    ///   bytes cannot be told.
    mutating func judge(at now: NIODeadline, taken: UInt64?) -> Int? {
        guard waitingSince != nil else { return nil }
        stopWaiting(at: now)
        waitingSince = now
        guard waited >= window else { return nil }
        defer {
            waited = .zero
            takenAtStart = taken
        }
        guard let taken, let before = takenAtStart, waited.nanoseconds > 0 else { return nil }
        let count = Double(taken >= before ? taken - before : 0)
        return Int(count / (Double(waited.nanoseconds) / 1_000_000_000))
    }
}
