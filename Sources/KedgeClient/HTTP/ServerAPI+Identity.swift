internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Links, and the owner for whom the credential acts.
extension ServerAPI {
    func createLink(_ request: CreateLinkRequest) async throws -> Answered<CreateLinkResponse> {
        try await value(
            of: call(
                "create link", .post, "/links", fields: [.contentType: "application/json"],
                body: .bytes(try encode(request))), about: .session)
    }

    /// - Parameter expiresAt: The end of the link; nil if it is unknown.
    func revokeLink(_ id: String, expiresAt: Timestamp?) async throws {
        var (fields, body): (HTTPFields, TransportBody?) = ([:], nil)
        if let expiresAt {
            fields[.contentType] = "application/json"
            body = .bytes(try encode(RevokeLinkRequest(expiresAt: expiresAt)))
        }
        let call = call(
            "revoke link", .delete, "/links/\(URLText.escapeQuery(id))", fields: fields, body: body)
        _ = try await success(of: call, about: .session)
    }

    func owner() async throws -> Answered<AccountDescription> {
        try await value(of: call("ask for the owner", .get, "/me"), about: .session)
    }
}
