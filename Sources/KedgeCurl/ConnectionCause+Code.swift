import KedgeTransport

extension ConnectionCause {
    /// The cause of a failure that this module's own code found.
    init(_ code: CurlError.Code) {
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
