/// The principals that may use a route.
package struct Access: Hashable, Sendable {
    package enum Rule: Hashable, Sendable {
        /// All requests, also those without a principal.
        case open
        /// Every principal but links.
        case anyPrincipal
        /// Principals with at least one of the scopes.
        case anyOf([Scope])
    }

    package let rule: Rule
    /// The kinds of links that pass. The handler checks their objects and limits.
    package let links: Set<LinkKind>

    private init(_ rule: Rule, links: Set<LinkKind> = []) {
        self.rule = rule
        self.links = links
    }

    /// For all requests, also those without a credential.
    package static let `public` = Access(.open)

    /// For every principal but links.
    package static let any = Access(.anyPrincipal)

    /// For principals with at least one of the scopes, and for links of these kinds.
    package static func anyOf(_ scopes: Scope..., links: Set<LinkKind> = []) -> Access {
        Access(.anyOf(scopes), links: links)
    }
}
