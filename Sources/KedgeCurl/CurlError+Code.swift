extension CurlError {
    /// The kinds of failure; the text of each is stable.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        enum Kind: String, Sendable {
            case invalidURL
            case couldNotResolve
            case couldNotConnect
            case timedOut
            case stalled
            case closedEarly
            case sendFailed
            case receiveFailed
            case tlsFailed
            case protocolError
            case responseTooLarge
            case bodyReadFailed
            case cancelled
            case internalError
        }

        let kind: Kind

        /// The stable name, for example `couldNotConnect`.
        package var description: String { kind.rawValue }

        /// The URL is malformed, or its scheme is neither `http` nor `https`.
        package static let invalidURL = Code(kind: .invalidURL)
        /// The name of the host, or of the proxy, has no address at the moment.
        package static let couldNotResolve = Code(kind: .couldNotResolve)
        /// No connection could be made: refused, unreachable, or no local port left.
        package static let couldNotConnect = Code(kind: .couldNotConnect)
        /// Connecting, or the whole exchange, took longer than allowed.
        package static let timedOut = Code(kind: .timedOut)
        /// No byte was sent or received within the stall timeout.
        package static let stalled = Code(kind: .stalled)
        /// The peer closed the connection before the response was complete.
        package static let closedEarly = Code(kind: .closedEarly)
        /// Sending failed, before or after a response head arrived.
        package static let sendFailed = Code(kind: .sendFailed)
        /// Receiving failed before a response head arrived.
        package static let receiveFailed = Code(kind: .receiveFailed)
        /// The TLS handshake failed, or the certificate is not trusted.
        package static let tlsFailed = Code(kind: .tlsFailed)
        /// The peer does not speak valid HTTP.
        package static let protocolError = Code(kind: .protocolError)
        /// The response head is larger than the configuration allows.
        package static let responseTooLarge = Code(kind: .responseTooLarge)
        /// The body source threw, or ended before its stated size.
        package static let bodyReadFailed = Code(kind: .bodyReadFailed)
        /// The task was cancelled, the body was dropped, or the client was shut down.
        package static let cancelled = Code(kind: .cancelled)
        /// libcurl or the system failed unexpectedly: out of memory, or a mistake of ours.
        package static let internalError = Code(kind: .internalError)
    }
}
