/// A request that got no complete answer.
public struct TransportError: Error, Sendable {
    /// What happened, as far as a transfer acts on it.
    public enum Kind: String, Sendable {
        /// The server's name has no address, or no connection could be made: wait for the network.
        case offline
        /// The connection ended before the answer was complete.
        case dropped
        /// No byte moved for the stall timeout.
        case stalled
        /// Connecting or the exchange took longer than allowed.
        case timedOut
        /// The connection could not be made secure.
        case tls
        /// The task was canceled or the transport is shut down.
        case canceled
        /// The body source of the request threw; ``TransportError/cause`` says what.
        case bodyUnreadable
        /// Anything else: not HTTP, too large, an unusable URL.
        case other
    }

    /// What happened.
    public let kind: Kind
    /// True when the same request may well succeed later without anybody changing anything.
    public let isTransient: Bool
    /// Where the connection failed and why, as far as the transport can tell.
    public let connection: ConnectionFailure?
    /// Words for the log; never for strangers.
    public let detail: String
    /// The error behind this one, for the log.
    public let cause: (any Error)?

    /// Makes an error.
    ///
    /// - Parameter isTransient: Nil takes what is usual for the kind.
    public init(
        _ kind: Kind, isTransient: Bool? = nil, connection: ConnectionFailure? = nil,
        detail: String = "", cause: (any Error)? = nil
    ) {
        self.kind = kind
        self.isTransient = isTransient ?? Self.isUsuallyTransient(kind)
        self.connection = connection
        self.detail = detail
        self.cause = cause
    }

    private static func isUsuallyTransient(_ kind: Kind) -> Bool {
        switch kind {
        case .offline, .dropped, .stalled, .timedOut: true
        case .tls, .canceled, .bodyUnreadable, .other: false
        }
    }
}

extension TransportError: CustomStringConvertible, CustomDebugStringConvertible {
    /// The kind alone, which is safe to show to anybody.
    public var description: String { kind.rawValue }

    /// Everything that is known, for the log.
    public var debugDescription: String {
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        return "\(kind.rawValue): \(detail)\(causeText)"
    }
}
