/// Limits that an owner has of its own. Nil is the limit of the settings, and 0 is no limit.
public struct OwnerLimitValues: Codable, Hashable, Sendable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxStoredBytes, maxOpenSessions, maxFileBytes
    }

    /// Maximum of the stored and the reserved bytes together.
    public var maxStoredBytes: Int64?
    /// Maximum number of unfinished sessions.
    public var maxOpenSessions: Int64?
    /// Maximum size of one file in bytes.
    public var maxFileBytes: Int64?

    /// Creates the limits.
    public init(
        maxStoredBytes: Int64? = nil, maxOpenSessions: Int64? = nil, maxFileBytes: Int64? = nil
    ) {
        self.maxStoredBytes = maxStoredBytes
        self.maxOpenSessions = maxOpenSessions
        self.maxFileBytes = maxFileBytes
    }

    /// Decodes the limits; an unknown member is an error.
    public init(from decoder: any Decoder) throws {
        try decoder.requireMembers(among: Set(CodingKeys.allCases.map(\.rawValue)))
        let values = try decoder.container(keyedBy: CodingKeys.self)
        maxStoredBytes = try values.decodeIfPresent(Int64.self, forKey: .maxStoredBytes)
        maxOpenSessions = try values.decodeIfPresent(Int64.self, forKey: .maxOpenSessions)
        maxFileBytes = try values.decodeIfPresent(Int64.self, forKey: .maxFileBytes)
    }
}

/// Body of `PUT /owners/{owner}`. What is nil stays as it is.
public struct OwnerChange: Codable, Hashable, Sendable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case limits, isBlocked
    }

    /// Replaces all limits of the owner.
    public var limits: OwnerLimitValues?
    /// Blocks the owner, or ends that.
    public var isBlocked: Bool?

    /// Creates the request.
    public init(limits: OwnerLimitValues? = nil, isBlocked: Bool? = nil) {
        self.limits = limits
        self.isBlocked = isBlocked
    }

    /// Decodes the request; an unknown member is an error.
    public init(from decoder: any Decoder) throws {
        try decoder.requireMembers(among: Set(CodingKeys.allCases.map(\.rawValue)))
        let values = try decoder.container(keyedBy: CodingKeys.self)
        limits = try values.decodeIfPresent(OwnerLimitValues.self, forKey: .limits)
        isBlocked = try values.decodeIfPresent(Bool.self, forKey: .isBlocked)
    }
}

/// An owner of sessions and files.
public struct OwnerDescription: Codable, Hashable, Sendable {
    /// The name of the owner.
    public var owner: String
    /// Whether every credential of the owner is refused.
    public var isBlocked: Bool
    /// The limits that the owner has of its own.
    public var limits: OwnerLimitValues
    /// Bytes of the files that are not deleted.
    public var storedBytes: Int64
    /// Bytes reserved for unfinished sessions.
    public var reservedBytes: Int64
    /// Number of unfinished sessions.
    public var openSessions: Int64

    /// Creates the description.
    public init(
        owner: String, isBlocked: Bool, limits: OwnerLimitValues, storedBytes: Int64,
        reservedBytes: Int64, openSessions: Int64
    ) {
        self.owner = owner
        self.isBlocked = isBlocked
        self.limits = limits
        self.storedBytes = storedBytes
        self.reservedBytes = reservedBytes
        self.openSessions = openSessions
    }
}

/// One page of `GET /owners`, in the order of the names.
public struct OwnerList: Codable, Hashable, Sendable {
    /// The owners, at most `limit`.
    public var owners: [OwnerDescription]
    /// Send it as `after` for the next page. Absent on the last page.
    public var next: String?

    /// Creates a page with the cursor of the next one.
    public init(owners: [OwnerDescription], next: String?) {
        self.owners = owners
        self.next = next
    }
}
