/// Response to `GET /me`: the owner for whom the request acts, its rights, and what it uses.
public struct AccountDescription: Codable, Hashable, Sendable {
    /// The owner of the sessions and files that the request can use.
    public var owner: String
    /// How the client has proven who it is, such as `token` or `anonymous`. A string, because a
    /// newer server may know further ways.
    public var principal: String
    /// Names of the scopes, sorted.
    public var scopes: [String]
    /// The limits of the owner.
    public var limits: Limits
    /// The usage that these limits apply to.
    public var usage: Usage

    /// The limits of an owner; nil for none.
    public struct Limits: Codable, Hashable, Sendable {
        /// Maximum of the stored and the reserved bytes together.
        public var storedBytes: Int64?
        /// Maximum number of unfinished uploads.
        public var openSessions: Int64?
        /// Maximum size of one file.
        public var fileBytes: Int64?

        /// Creates limits.
        public init(
            storedBytes: Int64? = nil, openSessions: Int64? = nil, fileBytes: Int64? = nil
        ) {
            self.storedBytes = storedBytes
            self.openSessions = openSessions
            self.fileBytes = fileBytes
        }
    }

    /// The usage of an owner.
    public struct Usage: Codable, Hashable, Sendable {
        /// Bytes of the files.
        public var storedBytes: Int64
        /// Bytes reserved for unfinished uploads.
        public var reservedBytes: Int64
        /// Number of unfinished uploads.
        public var openSessions: Int64

        /// Creates a usage.
        public init(storedBytes: Int64, reservedBytes: Int64, openSessions: Int64) {
            self.storedBytes = storedBytes
            self.reservedBytes = reservedBytes
            self.openSessions = openSessions
        }
    }

    /// Creates the description of an owner.
    public init(
        owner: String, principal: String, scopes: [String], limits: Limits, usage: Usage
    ) {
        self.owner = owner
        self.principal = principal
        self.scopes = scopes
        self.limits = limits
        self.usage = usage
    }
}
