internal import NIOCore

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The last failure to accept a connection. Has no clock: callers pass the time.
struct AcceptTrouble: Equatable {
    /// The reason why a connection was not accepted. The raw values are part of the `/readyz`
    /// contract.
    enum Reason: String, Sendable {
        /// The process or the system has no file descriptor left.
        case descriptors
        /// The system has no memory for another connection.
        case memory

        /// Returns nil for errors that waiting does not resolve.
        ///
        /// - Parameter code: The `errno` of accept(2).
        init?(errnoCode code: Int32) {
            switch code {
            case EMFILE, ENFILE: self = .descriptors
            case ENOBUFS, ENOMEM: self = .memory
            default: return nil
            }
        }
    }

    /// Time for which accepting pauses after a failure.
    static let pause = TimeAmount.milliseconds(500)
    /// Minimum time between two log lines.
    static let logInterval = TimeAmount.seconds(10)
    /// Time without a failure after which accepting has recovered. Several attempts fit into it.
    static let recoveryTime = TimeAmount.seconds(2)

    private var last: (reason: Reason, at: NIODeadline)?
    private var loggedAt: NIODeadline?
    /// Failures since the last log line.
    private var silentCount = 0

    /// - Returns: The number of failures to log, including this one; nil within the log interval.
    mutating func failed(_ reason: Reason, at now: NIODeadline) -> Int? {
        last = (reason, now)
        silentCount += 1
        if let loggedAt, now - loggedAt < Self.logInterval { return nil }
        loggedAt = now
        defer { silentCount = 0 }
        return silentCount
    }

    /// The reason why connections are not accepted; nil when they are.
    func reason(at now: NIODeadline) -> Reason? {
        guard let last, now - last.at < Self.recoveryTime else { return nil }
        return last.reason
    }

    static func == (left: AcceptTrouble, right: AcceptTrouble) -> Bool {
        left.last?.reason == right.last?.reason && left.last?.at == right.last?.at
            && left.loggedAt == right.loggedAt && left.silentCount == right.silentCount
    }
}
