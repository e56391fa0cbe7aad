public import KedgeModel
public import KedgeTransport

/// The result of examining a server and the route to it (``RemoteAPI/examine()``).
public struct ServerReport: Sendable, Codable, Hashable {
    /// Base URL of the server, without credentials.
    public var address: String
    /// Version of the service; nil if it does not report one.
    public var version: String?
    /// Upload protocols of the server; nil if it does not report them.
    public var protocols: [SupportedProtocol]?
    /// Limits of the server; nil if it does not report them.
    public var limits: SessionLimits?
    /// Why the server cannot work now; nil when it can.
    public var trouble: String?
    /// Code of ``trouble``.
    package var troubleCode: ErrorCode?
    /// Shortest round trip of several requests over one connection, in milliseconds.
    public var latencyMilliseconds: Double
    /// The server's clock minus this machine's, accurate to one second; nil without a `Date` field.
    public var clockDifferenceSeconds: Double?
    /// Intermediaries named by the answer (`Via`).
    public var via: String?
    /// The server software named by the answer (`Server`).
    public var server: String?
    /// The proxy that the configuration or the environment names for the address.
    public var proxy: EnvironmentProxy?
}
