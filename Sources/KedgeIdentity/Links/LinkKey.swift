package import KedgeModel
package import KedgeSecrets

/// A key that signs and verifies links. It is derived from a master key and its own id, so rows
/// contain no secret.
package struct LinkKey: Sendable {
    /// Appears in each link that the key signs.
    package let id: String
    package let createdAt: Timestamp
    /// The first moment at which the key no longer signs; nil while it is in use.
    package let signsUntil: Timestamp?
    /// The first moment at which links of the key are no longer valid; nil while there is none.
    package let verifiesUntil: Timestamp?
    private let hmac: HMACSHA256

    /// - Precondition: The id is well formed.
    package init(
        id: String, master: MasterKey, createdAt: Timestamp, signsUntil: Timestamp? = nil,
        verifiesUntil: Timestamp? = nil
    ) {
        precondition(Self.isWellFormed(id), "the id of a key has 1 to 32 letters and digits")
        self.id = id
        self.createdAt = createdAt
        self.signsUntil = signsUntil
        self.verifiesUntil = verifiesUntil
        hmac = HMACSHA256(key: master.derive("kedge link \(id)"))
    }

    /// Makes the id of a new key.
    package static func randomID() -> String { Base62.random(width: 8) }

    /// Whether the text can be the id of a key: 1 to 32 letters and digits.
    package static func isWellFormed(_ id: String) -> Bool {
        (1...32).contains(id.utf8.count) && Base62.isWellFormed(id, width: id.utf8.count)
    }

    func signs(at now: Timestamp) -> Bool {
        isBefore(signsUntil, now) && isBefore(verifiesUntil, now)
    }

    func verifies(at now: Timestamp) -> Bool { isBefore(verifiesUntil, now) }

    /// Returns the code of the text, in base64url.
    func code(of text: [UInt8]) -> String { Base64URL.encode(hmac.code(of: text)) }

    private func isBefore(_ end: Timestamp?, _ now: Timestamp) -> Bool {
        guard let end else { return true }
        return now < end
    }
}
