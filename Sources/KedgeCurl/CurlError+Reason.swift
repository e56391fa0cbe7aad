extension CurlError {
    /// The cause of a failed exchange, as far as libcurl and the system report it; the text of each
    /// is stable.
    package enum Reason: String, CaseIterable, Sendable {
        /// The resolver reports that the name does not exist.
        case nameNotFound
        /// The resolver cannot answer at the moment.
        case nameUnresolved
        /// The name of the proxy has no address at the moment.
        case proxyUnresolved
        /// The proxy refused to open a connection to the host.
        case proxyRefused
        /// The host answers, but nothing listens on the port.
        case refused
        /// There is no route to the host.
        case unreachable
        /// Connecting, or the whole exchange, took longer than allowed.
        case timedOut
        /// No byte was sent or received within the stall timeout.
        case stalled
        /// The peer, or a device on the way, reset the connection.
        case reset
        /// The peer closed the connection before the answer was complete.
        case closed
        case certificateExpired
        case certificateNotYetValid
        /// The certificate is trusted, but belongs to another host.
        case certificateWrongHost
        case certificateUntrusted
        /// The file of trusted authorities cannot be read.
        case trustFileUnreadable
        /// The peer does not speak TLS, or no version that both ends support.
        case tlsRefused
        /// The answer is not valid HTTP.
        case notHTTP
        case other

        /// The reason of a failure that this module's own code found.
        init(_ code: Code) {
            self =
                switch code.kind {
                case .couldNotResolve: .nameUnresolved
                case .couldNotConnect: .unreachable
                case .timedOut: .timedOut
                case .stalled: .stalled
                case .closedEarly: .closed
                case .sendFailed, .receiveFailed: .reset
                case .tlsFailed: .tlsRefused
                case .protocolError: .notHTTP
                case .invalidURL, .responseTooLarge, .bodyReadFailed, .cancelled, .internalError:
                    .other
                }
        }
    }
}
