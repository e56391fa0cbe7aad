extension CurlClient {
    /// What a client does the same way for every request.
    package struct Configuration: Sendable {
        /// How long resolving, connecting and the TLS handshake may take together; 10 seconds.
        /// Raise it for far or congested networks, at the price of noticing dead hosts later.
        package var connectTimeout: Duration = .seconds(10)
        /// How long an exchange may go without a byte in either direction; 30 seconds.
        ///
        /// The time a server thinks before it answers counts, the time a paused reader lets pass
        /// does not. Too low breaks slow servers, too high holds a dead connection for longer.
        package var stallTimeout: Duration = .seconds(30)
        /// How many connections one origin (scheme, host and port) may have from this client; 8.
        ///
        /// Further requests stand in line until one becomes free, and a response body that is kept
        /// but not read holds its connection. More load the server more, fewer wait longer.
        package var maxConnectionsPerHost: Int = 8
        /// The `User-Agent` of requests that carry none of their own; `kedge`.
        package var userAgent: String = "kedge"
        /// A PEM file of certificate authorities to trust in place of the system's; `nil`.
        package var caFile: String?
        /// How large a response head may be, all its lines together; 64 KiB. A larger one fails
        /// with ``CurlError/Code/responseTooLarge``.
        package var maxResponseHeaderBytes: Int = 64 * 1024
        /// Whether `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` are obeyed; `true`.
        package var usesEnvironmentProxy: Bool = true

        /// Makes a configuration of the defaults.
        package init() {}
    }
}
