internal import NIOCore

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Darwin)
internal import Darwin
#endif

/// What has kept the server from taking connections, and since when. No clock: events bring the time.
struct AcceptTrouble: Equatable {
    /// Why no connection could be taken. The raw values are part of what `/readyz` promises.
    enum Reason: String, Sendable {
        /// The process or the system has no file descriptor left.
        case descriptors
        /// The system has no memory for another connection.
        case memory

        /// - Parameter code: What accept(2) failed with; nil for what waiting does not cure.
        init?(errnoCode code: Int32) {
            switch code {
            case EMFILE, ENFILE: self = .descriptors
            case ENOBUFS, ENOMEM: self = .memory
            default: return nil
            }
        }
    }

    /// How long accepting pauses after a failure.
    static let pause = TimeAmount.milliseconds(500)
    /// Failures are logged once in this time.
    static let logInterval = TimeAmount.seconds(10)
    /// Without another failure for this long it is over: accepting was tried several times.
    static let recoveryTime = TimeAmount.seconds(2)

    private var last: (reason: Reason, at: NIODeadline)?
    private var loggedAt: NIODeadline?
    /// Failures since the last log line.
    private var silentCount = 0

    /// - Returns: How many failures to log, this one included; nil when one was logged a moment ago.
    mutating func failed(_ reason: Reason, at now: NIODeadline) -> Int? {
        last = (reason, now)
        silentCount += 1
        if let loggedAt, now - loggedAt < Self.logInterval { return nil }
        loggedAt = now
        defer { silentCount = 0 }
        return silentCount
    }

    /// Why no connection is taken now; nil when connections are taken.
    func reason(at now: NIODeadline) -> Reason? {
        guard let last, now - last.at < Self.recoveryTime else { return nil }
        return last.reason
    }

    static func == (left: AcceptTrouble, right: AcceptTrouble) -> Bool {
        left.last?.reason == right.last?.reason && left.last?.at == right.last?.at
            && left.loggedAt == right.loggedAt && left.silentCount == right.silentCount
    }
}
