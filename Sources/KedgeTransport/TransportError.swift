/// A request without a complete answer.
public struct TransportError: Error, Sendable {
    /// The kinds of failure that a transfer distinguishes.
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
        /// The request's body source threw; ``TransportError/cause`` has its error.
        case bodyUnreadable
        /// Any other failure: not HTTP, too large, an unusable URL.
        case other
    }

    /// The kind of failure.
    public let kind: Kind
    /// Whether the same request may succeed later without any change.
    public let isTransient: Bool
    /// The place and reason of the failed connection, if the transport knows them.
    public let connection: ConnectionFailure?
    /// Text for the log; never for strangers.
    public let detail: String
    /// The error behind this one, for the log.
    public let cause: (any Error)?

    /// Creates an error. Nil for `isTransient` uses the default of the kind.
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
    /// The kind alone, which is safe for strangers.
    public var description: String { kind.rawValue }

    /// All facts, for the log.
    public var debugDescription: String {
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        return "\(kind.rawValue): \(detail)\(causeText)"
    }
}
