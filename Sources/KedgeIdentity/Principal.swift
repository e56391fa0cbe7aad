package import KedgeModel

/// The party that makes a request: who it is, for which owner it acts, and its rights.
package struct Principal: Hashable, Sendable {
    /// How the principal has proven who it is.
    package enum Kind: String, CaseIterable, Sendable {
        /// Not at all; only where the service accepts that.
        case anonymous
        /// By an API token.
        case token
        /// By a token of an OpenID provider.
        case oidc
        /// By a trusted proxy.
        case proxy
        /// By a link.
        case link
        /// By the user account on the machine of the service.
        case local
    }

    /// The owner whose sessions and files the request uses.
    package private(set) var owner: OwnerID
    package let kind: Kind
    /// A name for logs. It is no secret.
    package let name: String
    /// Empty for a link, which has a permission of its own.
    package let scopes: Set<Scope>
    package let link: Link?
    package let tokenID: TokenID?
    /// The principal's own owner while it acts for another one; nil otherwise.
    package private(set) var actingOwner: OwnerID?

    /// A principal other than a link.
    package init(
        owner: OwnerID, kind: Kind, name: String, scopes: Set<Scope>, tokenID: TokenID? = nil
    ) {
        precondition(kind != .link, "the principal of a link is made from the link")
        self.owner = owner
        self.kind = kind
        self.name = name
        self.scopes = scopes
        self.link = nil
        self.tokenID = tokenID
    }

    /// The principal of a verified token.
    package init(_ token: TokenRecord) {
        self.init(
            owner: token.owner, kind: .token, name: token.name, scopes: token.scopes,
            tokenID: token.id)
    }

    /// The principal of a verified link.
    package init(_ link: Link) {
        owner = link.owner
        kind = .link
        name = link.id.text
        scopes = []
        self.link = link
        tokenID = nil
    }

    /// The principal of each request where the service needs no credentials: all but `admin`.
    package static let anonymous = Principal(
        owner: .anonymous, kind: .anonymous, name: "anonymous",
        scopes: Set(Scope.allCases).subtracting([.admin]))
}

extension Principal {
    /// Identifies the principal in the sessions and links that it creates: `token:<id>`, or its
    /// kind and owner. A link passes on who created it.
    package var creator: String? {
        if let link { return link.createdBy }
        if let tokenID { return "token:\(tokenID)" }
        return "\(kind.rawValue):\(actingOwner ?? owner)"
    }

    /// Refuses a principal that may not use a route.
    package func require(_ access: Access) throws(AccessRefusal) {
        if access.rule == .open { return }
        if let link {
            guard access.links.contains(link.kind) else {
                throw AccessRefusal.linkNotAccepted(link.kind)
            }
            return
        }
        guard case .anyOf(let accepted) = access.rule else { return }
        guard accepted.contains(where: { scopes.contains($0) }) else {
            throw AccessRefusal.lacksScope(anyOf: accepted)
        }
    }

    /// Returns the principal as it acts for another owner, with its own scopes.
    ///
    /// - Throws: ``AccessRefusal`` without the scope `act-as`.
    package func acting(for other: OwnerID) throws(AccessRefusal) -> Principal {
        try require(.anyOf(.actAs))
        var principal = self
        principal.owner = other
        principal.actingOwner = actingOwner ?? owner
        return principal
    }
}
