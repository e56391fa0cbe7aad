internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

/// Operations on API tokens: make, list, revoke.
struct TokenRoutes: Sendable {
    let administration: Administration?

    /// `GET /tokens`
    @Sendable func list(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let limit = try ListLimit.count(of: request, standard: 1000, max: 10_000)
        let owner = try request.uri.queryParameters.get("owner").map { text in
            guard let owner = OwnerID(checking: text) else {
                throw EngineError(.badRequest, InvalidToken.owner.description)
            }
            return owner
        }
        let tokens = try await present().tokens.tokens(of: owner, limit: limit + 1)
        return .json(
            TokenList(
                tokens: tokens.prefix(limit).map { TokenDescription($0) },
                hasMore: tokens.count > limit))
    }

    /// `POST /tokens`: the only answer that has the secret of the token.
    @Sendable func create(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let message = try await JSONBody.decode(CreateTokenRequest.self, from: request, context)
        let new: NewToken
        do {
            new = try NewToken(
                name: message.name, owner: message.owner,
                scopes: message.scopes.joined(separator: ","),
                expiresInSeconds: message.expiresInSeconds)
        } catch {
            throw EngineError(.badRequest, error.description)
        }
        let administration = try present()
        let token = APIToken.generate()
        let record = new.record(
            of: token, createdBy: context.principal.creatorText, at: administration.now())
        try await administration.tokens.insert(record)
        context.logMetadata.set("object", "token \(record.id)")
        var description = TokenDescription(record)
        description.token = token.text
        return .json(description, status: .created)
    }

    /// `DELETE /tokens/{tokenId}`
    @Sendable func revoke(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        guard let id = TokenID(context.parameters.get("tokenId") ?? "") else {
            throw EngineError(.notFound)
        }
        context.logMetadata.set("object", "token \(id)")
        let administration = try present()
        let isKnown = try await administration.tokens.revokeToken(id, at: administration.now())
        // In a fleet, other nodes are notified by the store.
        administration.onChange(.token(id))
        guard isKnown else { throw EngineError(.notFound) }
        return Response(status: .noContent)
    }

    private func present() throws -> Administration {
        guard let administration else { throw EngineError(.routeNotFound) }
        return administration
    }
}

extension TokenDescription {
    package init(_ record: TokenRecord) {
        self.init(
            tokenId: record.id.text, name: record.name, owner: record.owner.text,
            scopes: record.scopes.sorted().map(\.rawValue), createdBy: record.createdBy,
            createdAt: record.createdAt, expiresAt: record.expiresAt,
            lastUsedAt: record.lastUsedAt, revokedAt: record.revokedAt)
    }
}

extension Principal {
    /// The text that names the principal in a row that it made.
    fileprivate var creatorText: String {
        switch kind {
        case .token: "token:\(tokenID?.text ?? name)"
        case .local: name
        default: "\(kind.rawValue):\(name)"
        }
    }
}
