internal import KedgeIdentity
internal import KedgeModel

/// Gives the creators of uploads a link with which the upload is continued, so that a credential
/// that lives for minutes is enough to begin an upload of days.
struct SessionLinks: Sendable {
    /// Gives none.
    static let none = SessionLinks(authority: nil, placement: .never)

    /// Nil where the service has no keys for links.
    let authority: LinkAuthority?
    let placement: LinkPlacement

    /// Returns the query of the session's address with its link; empty for a creator who gets none.
    ///
    /// - Parameter createdAt: The time at which the session was created.
    func query(
        of session: SessionID, createdAt: Timestamp, for principal: Principal
    ) async throws -> String {
        try await text(of: session, createdAt: createdAt, for: principal)
            .map { "?\(LinkText.parameter)=\($0)" } ?? ""
    }

    /// Returns the text of the session's link; nil for a creator who gets none. A repeated creation
    /// gives the same text.
    private func text(
        of session: SessionID, createdAt: Timestamp, for principal: Principal
    ) async throws -> String? {
        guard let authority, placement.includes(principal) else { return nil }
        var linked = LinkedSession(session: session)
        var lifetime = authority.maxLifetime
        if let link = principal.link, case .put(let constraints) = link.grant {
            linked.origins = constraints.origins
            linked.networks = constraints.networks
            if let seconds = constraints.sessionLifetimeSeconds {
                lifetime = min(lifetime, .seconds(seconds))
            }
        }
        return try await authority.sign(
            Link(
                id: LinkID(of: session, owner: principal.owner), owner: principal.owner,
                grant: .session(linked), expiresAt: createdAt.advanced(by: lifetime),
                createdBy: principal.creator))
    }
}
