/// The version of this program; the contract in `openapi/kedge.yaml` has the same.
public enum KedgeVersion {
    /// By the rules of Semantic Versioning.
    public static let current = "0.1.0"
}

/// Answer to `GET /readyz` of a service that can do its work: what answers here, and what it takes.
public struct ServerDescription: Codable, Hashable, Sendable {
    /// The value of ``service`` of every Kedge.
    public static let serviceName = "kedge"

    /// `ready`.
    public var status: String
    /// ``serviceName``; tells a Kedge from anything else that answers 200. Nil from older ones.
    public var service: String?
    /// Version of the program.
    public var version: String?
    /// Ways to upload, in which the same session can be written.
    public var protocols: [SpokenProtocol]?
    /// What the service takes.
    public var limits: SessionLimits?

    /// The description of a service that is ready.
    public init(protocols: [SpokenProtocol], limits: SessionLimits) {
        self.status = "ready"
        self.service = Self.serviceName
        self.version = KedgeVersion.current
        self.protocols = protocols
        self.limits = limits
    }
}

/// A way to upload that a server speaks.
public struct SpokenProtocol: Codable, Hashable, Sendable {
    /// `native`, `tus` or `resumable-upload`.
    public var name: String
    /// Where uploads begin.
    public var path: String
    /// Versions of the protocol; empty for one without.
    public var versions: [String]

    /// A protocol at its path.
    public init(name: String, path: String, versions: [String] = []) {
        self.name = name
        self.path = path
        self.versions = versions
    }
}
