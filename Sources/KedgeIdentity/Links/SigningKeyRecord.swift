package import KedgeModel

/// A key of links as it is stored. It has no secret: the key is derived from a master key.
package struct SigningKeyRecord: Hashable, Sendable {
    /// Appears in each link that the key signs.
    package let id: String
    /// Identifies the master key from which the key is derived.
    package let masterFingerprint: String
    package let createdAt: Timestamp
    /// The first moment at which the key no longer signs; nil while it is in use.
    package var signsUntil: Timestamp?
    /// The first moment at which links of the key are no longer valid; nil while there is none.
    package var verifiesUntil: Timestamp?

    package init(
        id: String, masterFingerprint: String, createdAt: Timestamp,
        signsUntil: Timestamp? = nil, verifiesUntil: Timestamp? = nil
    ) {
        self.id = id
        self.masterFingerprint = masterFingerprint
        self.createdAt = createdAt
        self.signsUntil = signsUntil
        self.verifiesUntil = verifiesUntil
    }
}

extension SigningKeyRecord {
    /// Whether the key signs new links.
    package func signs(at now: Timestamp) -> Bool {
        (signsUntil.map { now < $0 } ?? true) && verifies(at: now)
    }

    /// Whether links of the key are valid.
    package func verifies(at now: Timestamp) -> Bool { verifiesUntil.map { now < $0 } ?? true }
}
