/// A loopback address and a port, as `127.0.0.1:9464` or `[::1]:9464`.
package struct ListenAddress: Hashable, Sendable {
    package let host: String
    package let port: Int

    /// Parses an address; nil unless it is a loopback one with a port from 1 to 65535.
    package init?(text: String) {
        guard let authority = Authority(text), let port = authority.port,
            Loopback.contains(authority.host), (1...65_535).contains(port)
        else { return nil }
        host = authority.host
        self.port = port
    }
}
