internal import Foundation
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeModel
internal import KedgeServer

/// Manages a service by its stores.
struct StoreManagement: ServiceManagement {
    let store: TokenStoreOpening.Rows
    let clock: any WallClock

    func createToken(_ new: NewToken) async throws -> TokenDescription {
        let token = APIToken.generate()
        let record = new.record(of: token, createdBy: "local:\(getuid())", at: clock.now())
        try await store.insert(record)
        var description = TokenDescription(record)
        description.token = token.text
        return description
    }

    func tokens(of owner: OwnerID?, limit: Int) async throws -> TokenList {
        let tokens = try await store.tokens(of: owner, limit: limit + 1)
        return TokenList(
            tokens: tokens.prefix(limit).map { TokenDescription($0) },
            hasMore: tokens.count > limit)
    }

    func revokeToken(_ id: TokenID) async throws -> Bool {
        try await store.revokeToken(id, at: clock.now())
    }

    func owners(after: String?, limit: Int) async throws -> OwnerList {
        let owners = try await store.owners(after: after.map { OwnerID($0) }, limit: limit + 1)
        let page = owners.prefix(limit)
        return OwnerList(
            owners: page.map { OwnerDescription($0) },
            next: owners.count > limit ? page.last?.owner.text : nil)
    }

    func owner(_ owner: OwnerID) async throws -> OwnerDescription? {
        try await store.owner(owner).map { OwnerDescription($0) }
    }

    func changeOwner(_ owner: OwnerID, _ change: OwnerChange) async throws -> OwnerDescription {
        if let limits = change.limits.flatMap({ OwnerLimits($0) }) {
            try await store.setLimits(limits, of: owner)
        }
        if let isBlocked = change.isBlocked {
            try await store.setBlocked(isBlocked, of: owner)
        }
        guard let record = try await store.owner(owner) else { throw MetadataError.notFound }
        return OwnerDescription(record)
    }
}
