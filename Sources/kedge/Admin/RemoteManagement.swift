internal import KedgeClient
internal import KedgeIdentity
internal import KedgeModel

/// Manages a running service by requests.
struct RemoteManagement: ServiceManagement {
    let api: AdminAPI

    func createToken(_ new: NewToken) async throws -> TokenDescription {
        try await api.createToken(
            CreateTokenRequest(
                name: new.name, owner: new.owner.text,
                scopes: new.scopes.sorted().map(\.rawValue),
                expiresInSeconds: new.lifetime?.components.seconds))
    }

    func tokens(of owner: OwnerID?, limit: Int) async throws -> TokenList {
        try await api.tokens(of: owner?.text, limit: limit)
    }

    func revokeToken(_ id: TokenID) async throws -> Bool {
        do {
            try await api.revokeToken(id.text)
            return true
        } catch let error as TransferError where error.code == .notFound {
            return false
        }
    }

    func owners(after: String?, limit: Int) async throws -> OwnerList {
        try await api.owners(after: after, limit: limit)
    }

    func owner(_ owner: OwnerID) async throws -> OwnerDescription? {
        do {
            return try await api.owner(owner.text)
        } catch let error as TransferError where error.code == .notFound {
            return nil
        }
    }

    func changeOwner(_ owner: OwnerID, _ change: OwnerChange) async throws -> OwnerDescription {
        try await api.changeOwner(owner.text, change)
    }
}
