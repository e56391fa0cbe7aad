/// The version of this program, equal to the one in `openapi/kedge.yaml`.
public enum KedgeVersion {
    /// The version, following Semantic Versioning.
    public static let current = "0.1.0"
}

/// Response to `GET /readyz` of a ready service: its version, protocols and limits.
public struct ServerDescription: Codable, Hashable, Sendable {
    /// The value of ``service`` for every Kedge server.
    public static let serviceName = "kedge"

    /// `ready`.
    public var status: String
    /// ``serviceName``; distinguishes Kedge from other servers that respond with 200. Nil from
    /// older versions.
    public var service: String?
    /// Version of the program.
    public var version: String?
    /// The upload protocols; any of them can write the same session.
    public var protocols: [SupportedProtocol]?
    /// The limits of the service.
    public var limits: SessionLimits?

    /// Creates the description of a ready service.
    public init(protocols: [SupportedProtocol], limits: SessionLimits) {
        self.status = "ready"
        self.service = Self.serviceName
        self.version = KedgeVersion.current
        self.protocols = protocols
        self.limits = limits
    }
}

/// The earlier name of ``SupportedProtocol``.
public typealias SpokenProtocol = SupportedProtocol

/// An upload protocol of a server.
public struct SupportedProtocol: Codable, Hashable, Sendable {
    /// `native`, `tus` or `resumable-upload`.
    public var name: String
    /// The path at which uploads are created.
    public var path: String
    /// Versions of the protocol; empty for a protocol without versions.
    public var versions: [String]

    /// Creates the description of a protocol at its path.
    public init(name: String, path: String, versions: [String] = []) {
        self.name = name
        self.path = path
        self.versions = versions
    }
}
