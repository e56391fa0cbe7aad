extension CurlError {
    /// Why an exchange got no complete answer, as far as libcurl and the system tell; the text of each
    /// is stable.
    package enum Reason: String, CaseIterable, Sendable {
        /// The resolver says that there is no such name.
        case nameNotFound
        /// The resolver cannot tell just now.
        case nameUnresolved
        /// The name of the proxy has no address just now.
        case proxyUnresolved
        /// The proxy would not open a connection to the host.
        case proxyRefused
        /// The host answers, and nothing listens on the port.
        case refused
        /// There is no way to the host.
        case unreachable
        /// Connecting, or the whole exchange, took longer than allowed.
        case timedOut
        /// No byte went in either direction for the stall timeout.
        case stalled
        /// The peer, or something on the way, reset the connection.
        case reset
        /// The peer closed the connection before the answer was complete.
        case closed
        case certificateExpired
        case certificateNotYetValid
        /// The certificate is trusted, and is another host's.
        case certificateWrongHost
        case certificateUntrusted
        /// The file of trusted authorities cannot be read.
        case trustFileUnreadable
        /// The peer does not speak TLS, or none that both ends take.
        case tlsRefused
        /// The answer is not HTTP as we know it.
        case notHTTP
        case other

        /// The reason of a failure that our own code found.
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
