internal import Foundation
internal import KedgeCurl
public import KedgeTransport

/// The transport over libcurl, and the only file of this module that uses it.
public struct CurlTransport: HTTPTransport {
    private let client: CurlClient

    /// Starts a transport with its own thread and connections.
    ///
    /// - Parameters:
    ///   - userAgent: Value of `User-Agent`.
    ///   - stallTimeout: Time without a byte after which an exchange fails.
    ///   - connectTimeout: Timeout for connecting.
    ///   - maxConnectionsPerHost: Further requests wait for a connection.
    ///   - bandwidth: Returns the limits of all requests together; called often. Nil for none.
    ///   - proxy: Proxy for all requests in place of the environment's.
    ///   - clientCertificate: Certificate to present to the server.
    ///   - serverURL: The only server that sees the certificate.
    ///   - caFile: PEM file of the certificate authorities to trust instead of the system's. Nil
    ///     uses the file named by the environment's `SSL_CERT_FILE`, or else the system's.
    ///   - originSettings: Settings of single servers by their URLs, which take precedence.
    public init(
        userAgent: String = "kedge", stallTimeout: Duration = .seconds(30),
        connectTimeout: Duration = .seconds(10), maxConnectionsPerHost: Int = 20,
        bandwidth: (@Sendable () -> BandwidthRates)? = nil, proxy: String? = nil,
        clientCertificate: ClientCertificate? = nil, serverURL: String? = nil,
        caFile: String? = nil, originSettings: [String: OriginSettings] = [:]
    ) {
        var configuration = CurlClient.Configuration()
        configuration.userAgent = userAgent
        configuration.stallTimeout = stallTimeout
        configuration.connectTimeout = connectTimeout
        configuration.maxConnectionsPerHost = maxConnectionsPerHost
        configuration.caFile = caFile ?? Self.environmentCAFile
        configuration.bandwidth = bandwidth
        configuration.proxy = proxy
        configuration.origins = Self.byOrigin(originSettings)
        if let clientCertificate, let origin = serverURL.flatMap(URLText.origin) {
            configuration.origins[origin, default: OriginSettings()].clientCertificate =
                clientCertificate
        }
        self.client = CurlClient(configuration: configuration)
    }

    /// Starts a transport to a process of this machine.
    ///
    /// - Parameter unixSocketPath: Path of a Unix socket, of at most 107 bytes.
    package init(unixSocketPath: String) {
        var configuration = CurlClient.Configuration()
        configuration.unixSocketPath = unixSocketPath
        configuration.usesEnvironmentProxy = false
        self.client = CurlClient(configuration: configuration)
    }

    /// Returns settings of servers by the origins of the URLs. Of several URLs with one origin, the
    /// first in the order of text counts.
    static func byOrigin(_ settings: [String: OriginSettings]) -> [String: OriginSettings] {
        var origins: [String: OriginSettings] = [:]
        for (url, own) in settings.sorted(by: { $0.key < $1.key }) {
            guard let origin = URLText.origin(of: url), origins[origin] == nil else { continue }
            origins[origin] = own
        }
        return origins
    }

    /// The file that the environment names; nil for an empty name.
    static var environmentCAFile: String? {
        ProcessInfo.processInfo.environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Sends a request on curl's own thread.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
    {
        try await client.send(request)
    }

    /// Stops curl's thread; running exchanges end as canceled.
    public func shutdown() async { await client.shutdown() }
}
