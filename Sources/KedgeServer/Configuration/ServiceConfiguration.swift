package import KedgeEngine
package import KedgeFiles
internal import KedgeModel
package import Logging

/// Everything that can be set about the server. See ``ConfigurationKey`` for names and defaults.
package struct ServiceConfiguration: Sendable {
    package var host: String
    package var port: Int
    /// Names besides loopback ones that clients may use for this server.
    package var allowedHosts: Set<String>
    /// Where clients find the server.
    package var publicAddress: PublicAddress
    /// Directory of the embedded stores.
    package var dataDirectory: String
    package var metadata: MetadataPlace
    package var bytes: BytesPlace
    /// On, except while somebody measures what it costs.
    package var durability: Durability
    package var logLevel: Logger.Level
    package var logFormat: LogFormat
    package var engine: EngineConfiguration
    /// Connections held at once; nil for as many as there are file descriptors for.
    package var maxConnections: Int?
    /// A connection on which nothing moves for this long is closed.
    package var idleTimeout: Duration
    /// A body that comes slower than this over ten seconds of waiting is cut, in bytes a second.
    package var minBodyBytesPerSecond: Int
    /// Readers that take an answer slower than this, in bytes a second, are cut while connections are scarce; 0
    /// for none.
    package var minAnswerBytesPerSecond: Int
    /// Waiting for a reader over which its rate is judged.
    package var answerWindow: Duration = .seconds(20)
    /// Front ends whose word counts about who the client is.
    package var trustedProxies: TrustedProxies
    /// How long a stopping server lets running bodies go on before it saves them as partials.
    package var drainTimeout: Duration
    /// Bytes of the disk that uploads never use.
    package var storageReserve: Int64
    /// What the data directory has to be.
    package var directoryDemands: DirectoryDemands
    package var sweepInterval: Duration
    /// Where tus uploads are.
    package var tusEndpoint: EndpointPath
    /// Paths that take uploads as `/files` does.
    package var uploadTargets: [EndpointPath]
    /// Whether IETF uploads are sent 104 answers.
    package var interim: InterimPolicy
    /// Pages of other origins that may use the service.
    package var cors: CORSPolicy

    /// True when rows or bytes are in the data directory.
    package var usesDataDirectory: Bool { metadata == .sqlite || bytes == .disk }

    /// True when only this machine can reach the server.
    package var isLoopback: Bool { Loopback.contains(host) }
}

/// Form of the log lines on standard error.
package enum LogFormat: String, Sendable {
    case text
    case json
}

/// A setting that is wrong; the message names it and says what would be right.
package struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
