internal import KedgeIdentity

/// Which creators of uploads get a link with which the upload is continued.
package enum LinkPlacement: String, Sendable {
    /// Those whose credential may end before the upload does: links, and tokens of an OpenID
    /// provider.
    case auto
    case always
    case never

    func includes(_ principal: Principal) -> Bool {
        switch self {
        case .auto: [.link, .oidc].contains(principal.kind)
        case .always: principal.kind != .anonymous
        case .never: false
        }
    }
}
