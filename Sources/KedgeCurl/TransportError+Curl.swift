package import KedgeTransport

extension TransportError {
    /// The failure in libcurl's terms; nil if the body source threw, if the answer was larger than
    /// its reader allowed, and for errors of other transports.
    package var curl: CurlError? { cause as? CurlError }

    /// The stable name of the failure: that of curl's code, which is finer than ``kind``, or else
    /// that of the kind.
    package var code: String { curl?.code.description ?? kind.rawValue }

    /// Translates a curl error.
    ///
    /// - Parameters:
    ///   - proxy: The proxy of the request, without user and password; nil for none.
    ///   - caFile: File of the trusted authorities; nil for those of the system.
    init(_ error: CurlError, proxy: String?, caFile: String?) {
        let kind: Kind =
            switch error.code {
            case .couldNotResolve, .couldNotConnect: .offline
            case .closedEarly, .sendFailed, .receiveFailed: .dropped
            case .stalled: .stalled
            case .timedOut: .timedOut
            // The connection was cut before it was secure.
            case .tlsFailed: error.reason == .reset ? .offline : .tls
            case .cancelled: .canceled
            case .bodyReadFailed: .bodyUnreadable
            default: .other
            }
        var connection = ConnectionFailure(error, proxy: proxy)
        connection?.trustFile = caFile
        self.init(
            kind, isTransient: error.isTransient, connection: connection,
            detail: error.debugDescription,
            cause: error.cause ?? error)
    }
}

extension ConnectionFailure {
    /// Translates curl's facts about the connection; nil if the connection did not fail.
    fileprivate init?(_ error: CurlError, proxy: String?) {
        guard let host = error.host, let port = error.port, error.reason != .other else {
            return nil
        }
        self.init(error.reason, host: host, port: port, proxy: proxy)
    }
}
