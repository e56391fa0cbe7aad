internal import KedgeHash
package import KedgeModel

/// The identifier of a link, by which its uses are counted and by which it can be revoked.
///
/// Links are not stored. The second half of an identifier is derived from the first half and the
/// owner, so that no owner can revoke the links of another one.
package struct LinkID: RandomIdentifier {
    /// Number of digits of the first half.
    private static let seedWidth = 16

    /// The 32 lowercase hexadecimal digits.
    package let text: String
    /// Wraps text that is already checked; unchecked text goes through `init?(_:)`.
    package init(wellFormed text: String) { self.text = text }
}

extension LinkID {
    /// Makes the identifier of a new link of an owner.
    package static func random(of owner: OwnerID) -> LinkID { LinkID(seed: random().text, owner) }

    /// The identifier of the link that the creation of a session answers. It is always the same.
    package init(of session: SessionID, owner: OwnerID) { self.init(seed: session.text, owner) }

    /// Whether the identifier was made for a link of this owner.
    package func belongs(to owner: OwnerID) -> Bool { LinkID(seed: text, owner) == self }

    /// Uses the first half of well-formed text.
    private init(seed text: String, _ owner: OwnerID) {
        let seed = String(text.prefix(Self.seedWidth))
        let digest = SHA256Hasher.digest(of: Array("kedge link \(seed) \(owner)".utf8))
        self.init(wellFormed: seed + digest.hex.prefix(Self.seedWidth))
    }
}
