internal import KedgeIdentity
internal import KedgeModel

/// The tokens and owners of a service.
protocol ServiceManagement {
    /// Makes a token; the description has its secret.
    func createToken(_ new: NewToken) async throws -> TokenDescription

    /// Returns the newest tokens, of all owners or of one.
    func tokens(of owner: OwnerID?, limit: Int) async throws -> TokenList

    /// Revokes a token.
    ///
    /// - Returns: Whether there is such a token.
    func revokeToken(_ id: TokenID) async throws -> Bool

    /// Returns one page of the owners by name.
    func owners(after: String?, limit: Int) async throws -> OwnerList

    /// Returns an owner; nil for one that has no limits and has never uploaded anything.
    func owner(_ owner: OwnerID) async throws -> OwnerDescription?

    /// Changes an owner, and returns it.
    func changeOwner(_ owner: OwnerID, _ change: OwnerChange) async throws -> OwnerDescription
}
