package import KedgeModel
internal import KedgeTransport

/// Tokens and owners of a service, for operators. Each call is one request.
///
/// Errors are ``TransferError`` with the server's code, or `OFFLINE`.
package struct AdminAPI: Sendable {
    private let remote: RemoteAPI
    /// Only if it belongs to this value.
    private let transport: (any HTTPTransport)?

    fileprivate init(_ remote: RemoteAPI) {
        self.remote = remote
        transport = nil
    }

    /// Uses the Unix socket of a service of this machine. ``close()`` ends it.
    package init(unixSocketPath: String) {
        let transport = CurlTransport(unixSocketPath: unixSocketPath)
        self.transport = transport
        remote = RemoteAPI(
            api: ServerAPI(baseURL: "http://localhost", token: nil, transport: transport))
    }

    /// Releases the connections to a Unix socket.
    package func close() async { await transport?.shutdown() }

    /// Returns the newest tokens.
    ///
    /// - Parameter owner: Only tokens of this owner; nil for all.
    package func tokens(of owner: String?, limit: Int) async throws -> TokenList {
        try await remote.call { try await remote.api.listTokens(owner: owner, limit: limit) }
    }

    /// Makes a token. A lost answer leaves one whose secret no one knows.
    package func createToken(_ request: CreateTokenRequest) async throws -> TokenDescription {
        try await remote.call { try await remote.api.createToken(request) }
    }

    /// Revokes a token.
    package func revokeToken(_ id: String) async throws {
        try await remote.call { try await remote.api.revokeToken(id) }
    }

    /// Returns one page of the owners by name.
    package func owners(after: String?, limit: Int) async throws -> OwnerList {
        try await remote.call { try await remote.api.listOwners(after: after, limit: limit) }
    }

    /// Returns an owner.
    package func owner(_ owner: String) async throws -> OwnerDescription {
        try await remote.call { try await remote.api.owner(owner) }
    }

    /// Changes an owner, and returns it.
    package func changeOwner(
        _ owner: String, _ change: OwnerChange
    ) async throws -> OwnerDescription {
        try await remote.call { try await remote.api.changeOwner(owner, change) }
    }
}

extension TransferClient {
    /// Tokens and owners of the server.
    package var admin: AdminAPI { AdminAPI(remote) }
}
