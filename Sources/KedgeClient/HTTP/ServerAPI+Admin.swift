internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

// The operations of operators.
extension ServerAPI {
    func listTokens(owner: String?, limit: Int) async throws -> TokenList {
        let suffix = owner.map { "&owner=\(URLText.escapeQuery($0))" } ?? ""
        return try await value(
            of: call("list tokens", .get, "/tokens?limit=\(limit)\(suffix)"), about: .file,
            maxBytes: 64 << 20
        ).value
    }

    func createToken(_ request: CreateTokenRequest) async throws -> TokenDescription {
        let call = call(
            "create token", .post, "/tokens", fields: [.contentType: "application/json"],
            body: .bytes(try encode(request)))
        return try await value(of: call, about: .file).value
    }

    func revokeToken(_ id: String) async throws {
        let call = call("revoke token", .delete, "/tokens/\(URLText.escapeQuery(id))")
        _ = try await success(of: call, about: .file)
    }

    func listOwners(after: String?, limit: Int) async throws -> OwnerList {
        let suffix = after.map { "&after=\(URLText.escapeQuery($0))" } ?? ""
        return try await value(
            of: call("list owners", .get, "/owners?limit=\(limit)\(suffix)"), about: .file
        ).value
    }

    func owner(_ owner: String) async throws -> OwnerDescription {
        try await value(
            of: call("show owner", .get, "/owners/\(URLText.escapeQuery(owner))"), about: .file
        ).value
    }

    func changeOwner(
        _ owner: String, _ change: OwnerChange
    ) async throws -> OwnerDescription {
        let call = call(
            "change owner", .put, "/owners/\(URLText.escapeQuery(owner))",
            fields: [.contentType: "application/json"], body: .bytes(try encode(change)))
        return try await value(of: call, about: .file).value
    }
}
