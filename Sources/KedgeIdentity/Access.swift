/// The principals that may use a route.
package struct Access: Hashable, Sendable {
    package enum Rule: Hashable, Sendable {
        /// All requests, also those without a principal.
        case open
        /// Every principal.
        case anyPrincipal
        /// Principals with at least one of the scopes.
        case anyOf([Scope])
    }

    package let rule: Rule

    private init(_ rule: Rule) { self.rule = rule }

    /// For all requests, also those without a credential.
    package static let `public` = Access(.open)

    /// For every principal.
    package static let any = Access(.anyPrincipal)

    /// For principals with at least one of the scopes.
    package static func anyOf(_ scopes: Scope...) -> Access { Access(.anyOf(scopes)) }
}
