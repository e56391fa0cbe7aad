package import KedgeModel

/// Stores what is known of owners: their limits, what they use, and whether they are blocked.
///
/// Each operation is one transaction. It is durable on return and changes nothing when it throws.
package protocol OwnerStore: Sendable {
    /// Returns the owner; nil for one that was never seen.
    func owner(_ id: OwnerID) async throws -> OwnerRecord?

    /// Returns up to `limit` owners in the order of their text, those after the given one.
    func owners(after: OwnerID?, limit: Int) async throws -> [OwnerRecord]

    /// Replaces the limits of an owner. What it uses may exceed them then: it cannot grow, and
    /// nothing is removed.
    func setLimits(_ limits: OwnerLimits, of owner: OwnerID) async throws

    /// Blocks an owner, or ends that.
    func setBlocked(_ isBlocked: Bool, of owner: OwnerID) async throws
}
