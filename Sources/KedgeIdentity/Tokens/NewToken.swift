package import KedgeModel

/// The checked values of a token that is to be made.
package struct NewToken: Hashable, Sendable {
    package let name: String
    package let owner: OwnerID
    package let scopes: Set<Scope>
    /// Nil for a token that does not expire.
    package let lifetime: Duration?

    /// A hundred years. Larger values would only overflow in arithmetic.
    private static let maxLifetimeSeconds: Int64 = 3_153_600_000

    /// Checks the values.
    ///
    /// - Parameter scopes: Scopes and bundles, separated by commas.
    /// - Throws: ``InvalidToken`` with the first wrong value.
    package init(
        name: String, owner: String, scopes: String, expiresInSeconds: Int64?
    ) throws(InvalidToken) {
        let isName =
            (1...255).contains(name.utf8.count)
            && name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        guard isName else { throw InvalidToken.name }
        guard let owner = OwnerID(checking: owner) else { throw InvalidToken.owner }
        let parsed: Set<Scope>
        do {
            parsed = try Scope.parse(scopes)
        } catch {
            throw InvalidToken.scope(error)
        }
        guard !parsed.isEmpty else { throw InvalidToken.noScope }
        if let expiresInSeconds, !(1...Self.maxLifetimeSeconds).contains(expiresInSeconds) {
            throw InvalidToken.lifetime
        }
        self.name = name
        self.owner = owner
        self.scopes = parsed
        lifetime = expiresInSeconds.map { .seconds($0) }
    }

    /// Returns the row of a token with these values.
    package func record(
        of token: APIToken, createdBy: String, at now: Timestamp
    ) -> TokenRecord {
        TokenRecord(
            id: token.id, secretDigest: token.secretDigest, owner: owner, scopes: scopes,
            name: name, createdBy: createdBy, createdAt: now,
            expiresAt: lifetime.map { now.advanced(by: $0) })
    }
}

/// A reason why no token can be made of some values.
package enum InvalidToken: Error, Hashable, Sendable {
    case name
    case owner
    case scope(UnknownScope)
    case noScope
    case lifetime
}

extension InvalidToken: CustomStringConvertible {
    /// A sentence for people.
    package var description: String {
        switch self {
        case .name: "The name must have 1 to 255 bytes without control characters."
        case .owner:
            "The owner must be 1 to \(OwnerID.maxByteCount) printable ASCII characters."
        case .scope(let unknown): unknown.description
        case .noScope: "A token must have a scope."
        case .lifetime: "The time until expiry must be from a second to a hundred years."
        }
    }
}
