package import KedgeModel

/// A reason why a request may not use a route.
package enum AccessRefusal: Error, Hashable, Sendable {
    /// The request has no principal.
    case unauthenticated
    /// The principal has none of these scopes.
    case lacksScope(anyOf: [Scope])
    /// The route does not accept links of this kind.
    case linkNotAccepted(LinkKind)

    package var code: ErrorCode {
        switch self {
        case .unauthenticated: .unauthenticated
        case .lacksScope, .linkNotAccepted: .forbidden
        }
    }

    /// A sentence for people, safe to show to any client.
    package var sentence: String {
        switch self {
        case .unauthenticated: code.facts.sentence
        case .lacksScope(let scopes) where scopes.count == 1:
            "This needs the scope \(Scope.text(of: scopes))."
        case .lacksScope(let scopes): "This needs one of the scopes \(Scope.text(of: scopes))."
        case .linkNotAccepted(let kind): "A link of the kind \(kind.rawValue) does not permit this."
        }
    }
}
