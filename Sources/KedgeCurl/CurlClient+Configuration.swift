package import KedgeTransport

extension CurlClient {
    /// Settings that apply to every request of a client.
    package struct Configuration: Sendable {
        /// Longest time for resolving, connecting and the TLS handshake together; 10 seconds. A
        /// higher value suits far or congested networks, but notices dead hosts later.
        package var connectTimeout: Duration = .seconds(10)
        /// Longest time without a byte in either direction; 30 seconds.
        ///
        /// The server's thinking time counts; the time of a paused reader does not. Too low a value
        /// breaks slow servers, too high a value holds a dead connection for longer.
        package var stallTimeout: Duration = .seconds(30)
        /// Connections to one origin (scheme, host and port); 8.
        ///
        /// Further requests wait until one becomes free. A response body that is kept but not read
        /// holds its connection. More connections load the server more, fewer make requests wait
        /// longer.
        package var maxConnectionsPerHost: Int = 8
        /// The `User-Agent` of requests that have none of their own; `kedge`.
        package var userAgent: String = "kedge"
        /// A PEM file of certificate authorities that replaces the system's; `nil`.
        package var caFile: String?
        /// Largest response head, all its lines together; 64 KiB. A larger one fails with
        /// ``CurlError/Code/responseTooLarge``.
        package var maxResponseHeaderBytes: Int = 64 * 1024
        /// Whether `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` apply; `true`.
        package var usesEnvironmentProxy: Bool = true
        /// Proxy for all requests, in place of the environment's; `no_proxy` still applies. `nil`.
        package var proxy: String?
        /// Path of a Unix socket to which all connections go; the URL decides the rest. At most 107
        /// bytes. `nil`.
        package var unixSocketPath: String?
        /// Settings of single origins, by ``URLText/origin(of:)``; they take precedence. Empty.
        package var origins: [String: OriginSettings] = [:]
        /// Returns the limits of all exchanges together; called often. `nil` for none.
        package var bandwidth: (@Sendable () -> BandwidthRates)?

        /// Creates a configuration with the defaults.
        package init() {}
    }
}
