package import KedgeEngine
package import KedgeFiles
package import KedgeHash
package import KedgeIdentity
internal import KedgeModel
package import KedgeTLS
package import Logging

/// The settings of the server. See ``ConfigurationKey`` for names and defaults.
package struct ServiceConfiguration: Sendable {
    package var host: String
    package var port: Int
    /// Host names that the server answers to, besides loopback ones.
    package var allowedHosts: Set<String>
    /// Public address of the server, for the URLs in responses.
    package var publicAddress: PublicAddress
    /// Directory of the embedded stores.
    package var dataDirectory: String
    package var metadata: MetadataLocation
    package var bytes: BytesLocation
    /// On, except to measure what durability costs.
    package var durability: Durability
    /// The instructions for SHA-256; nil for the fastest that the processor has.
    package var hashPath: SHA256PairPath?
    package var logLevel: Logger.Level
    package var logFormat: LogFormat
    package var engine: EngineConfiguration
    /// Maximum number of concurrent connections; nil for as many as there are file descriptors for.
    package var maxConnections: Int?
    /// Time without traffic after which a connection is closed.
    package var idleTimeout: Duration
    /// Minimum rate of a request body, in bytes a second. A body that is slower over ten seconds of
    /// waiting is aborted.
    package var minBodyBytesPerSecond: Int
    /// Minimum rate at which a client reads a response, in bytes a second; 0 for none. Slower
    /// readers are disconnected while connections are scarce.
    package var minAnswerBytesPerSecond: Int
    /// Waiting time over which a reader's rate is measured.
    package var answerWindow: Duration = .seconds(20)
    /// Proxies whose `X-Forwarded-For` is trusted.
    package var trustedProxies: TrustedProxies
    /// Time that running request bodies get during shutdown before they are saved as partials.
    package var drainTimeout: Duration
    /// Disk space that uploads never use, in bytes.
    package var storageReserve: Int64
    /// Safety requirements for the data directory.
    package var directoryDemands: DirectoryRequirements
    package var sweepInterval: Duration
    /// Path of the tus endpoint.
    package var tusEndpoint: EndpointPath
    /// Additional paths that accept uploads like `POST /files`.
    package var uploadTargets: [EndpointPath]
    /// Whether IETF uploads get 104 responses.
    package var interim: InterimPolicy
    /// Other origins whose pages may use the service.
    package var cors: CORSPolicy
    /// Address of the listener for metrics; nil for none.
    package var metricsAddress: ListenAddress?
    package var identityMode: IdentityMode
    /// Whether tokens may arrive without TLS from other machines, because a proxy there ends it.
    package var acceptsPlainHTTP: Bool
    /// The certificate of the server; nil for HTTP without TLS.
    package var tls: TLSSettings?
    /// Time after which a connection without a complete TLS handshake is closed.
    package var handshakeTimeout: Duration = .seconds(10)
    /// Time between two checks of the files of the certificate for changes.
    package var certificateCheckInterval: Duration = .seconds(60)
    /// Path of the file with the master keys; nil for the one in the data directory.
    package var masterKeyPath: String?
    /// The OpenID providers whose tokens are accepted; nil for none.
    package var openID: OpenIDSettings?
    /// Identities that trusted proxies state; nil if they state none.
    package var proxyIdentity: ProxyIdentitySettings?
    package var rates = RateSettings()
    package var audit = AuditDestination.off
    /// Which creators of uploads get a link with which the upload is continued.
    package var linkPlacement: LinkPlacement
    /// Maximum time for which a link is valid.
    package var maxLinkLifetime: Duration

    /// Whether SIGHUP lets the service read files again; otherwise it ends the service.
    package var reloadsOnHangup: Bool {
        if case .file = audit { return true }
        return tls != nil
    }

    /// Returns the file with the master keys.
    ///
    /// - Throws: ``ConfigurationError`` if nodes may share the database and no file is named: each
    ///   of them would make a key of its own.
    package func masterKeyFile() throws -> MasterKeyFile {
        if let masterKeyPath { return MasterKeyFile(path: masterKeyPath, isDefault: false) }
        guard metadata == .sqlite else {
            throw ConfigurationError(
                "metadata is in PostgreSQL, which several nodes can share, and links need a "
                    + "master key: name a file with the key of all nodes in "
                    + "secrets.masterKeyFile.")
        }
        return MasterKeyFile(path: dataDirectory + "/master.key", isDefault: true)
    }

    /// Whether rows or bytes are in the data directory.
    package var usesDataDirectory: Bool { metadata == .sqlite || bytes == .disk }

    /// Whether only this machine can reach the server.
    package var isLoopback: Bool { Loopback.contains(host) }
}

/// How requests get their principal.
package enum IdentityMode: String, Sendable {
    /// Every request has the anonymous principal; for loopback only.
    case anonymous = "none"
    /// Every request needs a token, except on public routes.
    case tokens
}

/// Format of the log lines on standard error.
package enum LogFormat: String, Sendable {
    case text
    case json
}
