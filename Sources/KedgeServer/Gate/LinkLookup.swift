internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Finds the link of a request, and checks that its client may use it.
struct LinkLookup: Sendable {
    let authority: LinkAuthority

    /// Returns the link whose text a request has.
    ///
    /// - Throws: `LINK_INVALID`, `LINK_EXPIRED`; `FORBIDDEN` for an address that is not in the
    ///   networks of the link; an error of the store.
    func link(_ text: String, _ context: KedgeRequestContext) async throws -> Link {
        let link = try await authority.verify(text)
        guard link.networks.isEmpty || Self.contains(link.networks, context.clientBytes) else {
            throw EngineError(.forbidden, "The link does not permit this client address.")
        }
        return link
    }

    /// Returns the text of a request's link; nil without one. A link in the query takes precedence:
    /// some clients send a token that has expired beside it.
    ///
    /// - Throws: `BAD_REQUEST` for more than one link in the query.
    static func text(of request: Request) throws -> String? {
        if let text = try LinkText.inQuery(of: request) { return text }
        let values = request.headers[values: .authorization]
        guard values.count == 1 else { return nil }
        let words = values[0].split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer",
            words[1].hasPrefix(LinkSigner.prefix)
        else { return nil }
        return String(words[1])
    }

    /// Whether the link permits the page from which a request comes, which is of another origin.
    static func permits(_ link: Link, pageOf request: Request) -> Bool {
        let origins = Set(link.origins.compactMap { WebOrigin($0) })
        if let origin = request.headers[.origin] {
            return WebOrigin(origin).map { origins.contains($0) } ?? false
        }
        guard [.get, .head].contains(request.method) else { return false }
        // A person follows the link. The page that shows it cannot read the answer.
        if request.headers[.secFetchMode] == "navigate" { return true }
        guard let address = request.headers[.referer] else { return false }
        return WebOrigin(ofPageAt: address).map { origins.contains($0) } ?? false
    }

    private static func contains(_ networks: [String], _ client: [UInt8]?) -> Bool {
        guard let client else { return false }
        return networks.contains { AddressNetwork($0[...])?.contains(client) ?? false }
    }
}
