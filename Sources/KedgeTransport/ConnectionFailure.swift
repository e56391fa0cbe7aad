/// The reason why a server was not reached or a connection broke; each raw value is stable.
public enum ConnectionCause: String, CaseIterable, Codable, Hashable, Sendable {
    /// There is no host with this name.
    case nameNotFound
    /// The name cannot be looked up just now.
    case nameUnresolved
    /// The name of the proxy cannot be looked up.
    case proxyUnresolved
    /// The proxy would not open a connection to the host.
    case proxyRefused
    /// Nothing listens on the port.
    case refused
    /// There is no route to the host.
    case unreachable
    /// Connecting, or the whole exchange, took longer than allowed.
    case timedOut
    /// No byte moved in either direction for the stall timeout.
    case stalled
    /// The connection was reset.
    case reset
    /// The connection ended before the answer was complete.
    case closed
    /// The server's certificate has expired.
    case certificateExpired
    /// The server's certificate becomes valid later than this machine's clock says.
    case certificateNotYetValid
    /// The server's certificate is trusted but belongs to another host.
    case certificateWrongHost
    /// The server's certificate is not issued by a trusted authority.
    case certificateUntrusted
    /// The file of trusted authorities cannot be read.
    case trustFileUnreadable
    /// Client and server cannot agree on TLS.
    case tlsRefused
    /// The answer is not HTTP.
    case notHTTP
    /// Something else.
    case other

    /// Whether the server's certificate is at fault.
    package var isCertificate: Bool {
        switch self {
        case .certificateExpired, .certificateNotYetValid, .certificateWrongHost,
            .certificateUntrusted:
            true
        default: false
        }
    }

    /// The reason as text to follow host and port; nil when there is none.
    var words: String? {
        switch self {
        case .nameNotFound: "no such host"
        case .nameUnresolved: "temporary failure in name resolution"
        case .proxyUnresolved: "the proxy's name cannot be resolved"
        case .proxyRefused: "the proxy refused the connection"
        case .refused: "connection refused"
        case .unreachable: "no route to the host"
        case .timedOut: "timed out"
        case .stalled: "the connection stalled"
        case .reset: "connection reset"
        case .closed: "the connection was closed before the answer was complete"
        case .certificateExpired: "its certificate has expired"
        case .certificateNotYetValid:
            "its certificate is not valid yet; check the clock of this machine"
        case .certificateWrongHost: "its certificate is for another name; check the address"
        case .certificateUntrusted:
            "its certificate is not from a trusted authority; name the authority with a CA file"
        case .trustFileUnreadable: "the file of trusted authorities cannot be read"
        case .tlsRefused: "it refused a secure connection; check whether it supports HTTPS"
        case .notHTTP: "it does not speak HTTP"
        case .other: nil
        }
    }
}

/// The place and reason of a failed connection.
public struct ConnectionFailure: Hashable, Sendable {
    /// The reason.
    public let cause: ConnectionCause
    /// Host of the request's URL.
    public let host: String
    /// Port of the request's URL.
    public let port: Int
    /// Address of the proxy that the settings or the environment name, without user and password;
    /// nil for none.
    public let proxy: String?
    /// File of the trusted authorities that were used in place of the system's; nil for those.
    package var trustFile: String?

    /// Creates a failure.
    public init(_ cause: ConnectionCause, host: String, port: Int, proxy: String? = nil) {
        self.cause = cause
        self.host = host
        self.port = port
        self.proxy = proxy
    }

    /// A sentence without a full stop: host, proxy and reason; nil for a reason without text.
    package var text: String? {
        let way = proxy.map { " through the proxy \($0)" } ?? ""
        if let trustFile, cause == .certificateUntrusted {
            return "cannot reach \(host):\(port)\(way): its certificate is not from an authority"
                + " in the CA file \(trustFile)"
        }
        if let trustFile, cause == .trustFileUnreadable {
            return "cannot reach \(host):\(port)\(way): the CA file \(trustFile) cannot be read, or"
                + " has no certificate"
        }
        return cause.words.map { "cannot reach \(host):\(port)\(way): \($0)" }
    }
}
