internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Operations on links: make, revoke.
struct LinkRoutes: Sendable {
    let engine: TransferEngine
    /// Nil where the service accepts no links.
    let authority: LinkAuthority?
    let address: PublicAddress
    let tusEndpoint: EndpointPath

    /// `POST /links`: makes a link. Nothing is stored.
    @Sendable func create(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let authority = try requireAuthority()
        let message = try await JSONBody.decode(CreateLinkRequest.self, from: request, context)
        let grant = try LinkRequest(
            message, maxLifetime: authority.maxLifetime,
            maxMetadataByteCount: engine.configuration.maxMetadataByteCount
        ).grant()
        try await requireRight(to: grant, context)
        let link = Link(
            owner: context.owner, grant: grant,
            expiresAt: authority.expiry(after: .seconds(message.expiresInSeconds)),
            createdBy: context.principal.creator)
        context.logMetadata.set("link.id", link.id)
        let query = "?\(LinkText.parameter)=\(try await authority.sign(link))"
        return .json(response(for: link, query: query, request), status: .created)
    }

    /// `DELETE /links/{linkId}`: revokes a link of the owner.
    @Sendable func revoke(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let authority = try requireAuthority()
        guard let id = LinkID(context.parameters.get("linkId") ?? ""),
            id.belongs(to: context.owner)
        else { throw EngineError(.notFound) }
        let message = try await JSONBody.decode(
            RevokeLinkRequest.self, from: request, context, whenEmpty: RevokeLinkRequest())
        context.logMetadata.set("link.id", id)
        // The setting may have been longer when the link was made.
        let longest = authority.expiry(after: LinkAuthority.longestLifetime)
        let shortest = authority.expiry(after: authority.maxLifetime)
        let expiry = min(message.expiresAt ?? longest, longest)
        try await authority.revoke(id, until: max(expiry, shortest))
        return Response(status: .noContent)
    }

    private func requireAuthority() throws -> LinkAuthority {
        guard let authority else {
            throw EngineError(
                .forbidden, "The service accepts no links: links need identity.mode tokens.")
        }
        return authority
    }

    /// Requires the scope that the link gives away, and that its session or file exists.
    private func requireRight(to grant: LinkGrant, _ context: KedgeRequestContext) async throws {
        switch grant {
        case .put:
            try context.requireAccess(.anyOf(.uploadsWrite))
        case .session(let linked):
            try context.requireAccess(.anyOf(.uploadsWrite))
            _ = try await engine.uploadView(of: linked.session, owner: context.owner)
        case .get(let linked):
            try context.requireAccess(.anyOf(.filesRead))
            _ = try await engine.file(linked.file, owner: context.owner)
        }
    }

    private func response(
        for link: Link, query: String, _ request: Request
    ) -> CreateLinkResponse {
        func url(_ path: String) -> String { address.url(path + query, asked: request) }
        let (id, expiresAt) = (link.id.text, link.expiresAt)
        switch link.grant {
        case .put:
            return CreateLinkResponse(
                linkId: id, url: url("/files"), tusUrl: url("\(tusEndpoint)"),
                sessionsUrl: url("/uploads/sessions"), expiresAt: expiresAt)
        case .session(let linked):
            return CreateLinkResponse(
                linkId: id, url: url("/uploads/sessions/\(linked.session)"),
                tusUrl: url(tusEndpoint.path(of: linked.session)),
                resumableUrl: url("/uploads/resumable/\(linked.session)"), expiresAt: expiresAt)
        case .get(let linked):
            return CreateLinkResponse(
                linkId: id, url: url("/files/\(linked.file)"), expiresAt: expiresAt)
        }
    }
}
