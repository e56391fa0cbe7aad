package import KedgeModel

/// Stores the keys of links without their secrets, and the links that were revoked.
///
/// Each operation is one transaction. It is durable on return and changes nothing when it throws.
package protocol LinkStore: Sendable {
    /// Returns all keys, oldest first.
    func signingKeys() async throws -> [SigningKeyRecord]

    /// Adds a key. A repetition changes nothing; another key with the same id is an error.
    func insert(_ key: SigningKeyRecord) async throws

    /// Sets both ends of a key. An end that is stored never becomes later.
    ///
    /// - Returns: Whether there is such a key.
    func updateSigningKey(
        _ id: String, signsUntil: Timestamp?, verifiesUntil: Timestamp?
    ) async throws -> Bool

    /// Revokes a link. A repetition keeps the later time.
    ///
    /// - Parameter until: The time until which the revocation is stored: the end of the link.
    func revokeLink(_ id: LinkID, until: Timestamp) async throws

    /// Whether the link was revoked.
    func isRevoked(_ id: LinkID) async throws -> Bool
}
