internal import NIOCore

/// Measures how fast a client reads a response. Only time in which bytes wait for the client
/// counts.
struct ReaderPace: Equatable {
    /// Waiting time over which the rate is measured. It is long, because a client with a full
    /// receive buffer takes nothing until half of it is free. At 56 kbit/s that can take ten
    /// seconds.
    private let window: TimeAmount
    private var waited = TimeAmount.zero
    private var waitingSince: NIODeadline?
    private var takenAtStart: UInt64?

    init(window: TimeAmount) { self.window = window }

    /// Starts waiting for the client.
    ///
    /// - Parameter taken: Bytes that the client has acknowledged on this connection.
    mutating func wait(at now: NIODeadline, taken: @autoclosure () -> UInt64?) {
        if takenAtStart == nil { takenAtStart = taken() }
        if waitingSince == nil { waitingSince = now }
    }

    /// Stops waiting, because the client has taken all bytes.
    mutating func stopWaiting(at now: NIODeadline) {
        if let since = waitingSince { waited = waited + (now - since) }
        waitingSince = nil
    }

    /// Resets the measurement at the end of a response.
    mutating func reset() { self = ReaderPace(window: window) }

    /// - Returns: The rate in bytes a second, once per window; nil before its end and where the
    ///   number of acknowledged bytes is unknown.
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
