package import KedgeModel

/// The limits that an owner has of its own; nil for the value of the settings, zero for no limit.
package struct OwnerLimits: Hashable, Sendable {
    /// Maximum of the stored and the reserved bytes together.
    package var maxStoredBytes: Int64?
    /// Maximum number of sessions that are open or finalizing.
    package var maxOpenSessions: Int?
    /// Maximum size of one file.
    package var maxFileBytes: Int64?

    package init(
        maxStoredBytes: Int64? = nil, maxOpenSessions: Int? = nil, maxFileBytes: Int64? = nil
    ) {
        self.maxStoredBytes = maxStoredBytes
        self.maxOpenSessions = maxOpenSessions
        self.maxFileBytes = maxFileBytes
    }
}

/// The usage of an owner.
package struct OwnerUsage: Hashable, Sendable {
    /// Bytes of the files that are not deleted.
    package var storedBytes: Int64
    /// Bytes reserved for sessions that are open or finalizing.
    package var reservedBytes: Int64
    /// Number of these sessions.
    package var openSessions: Int64

    package init(storedBytes: Int64 = 0, reservedBytes: Int64 = 0, openSessions: Int64 = 0) {
        self.storedBytes = storedBytes
        self.reservedBytes = reservedBytes
        self.openSessions = openSessions
    }
}

/// An owner that has uploaded something, or that an administrator has named.
package struct OwnerRecord: Hashable, Sendable {
    package let owner: OwnerID
    package var limits: OwnerLimits
    package var usage: OwnerUsage
    /// Whether every credential of the owner is refused.
    package var isBlocked: Bool

    package init(
        owner: OwnerID, limits: OwnerLimits = OwnerLimits(), usage: OwnerUsage = OwnerUsage(),
        isBlocked: Bool = false
    ) {
        self.owner = owner
        self.limits = limits
        self.usage = usage
        self.isBlocked = isBlocked
    }
}
