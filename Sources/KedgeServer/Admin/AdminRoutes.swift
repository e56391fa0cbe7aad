internal import HTTPTypes
internal import KedgeIdentity

/// All operations for operators. Each needs the scope `admin`.
struct AdminRoutes: Sendable {
    let routes: [Route]

    init(_ administration: Administration?) {
        let tokens = TokenRoutes(administration: administration)
        routes = [
            Route(.get, "/tokens", .anyOf(.admin), tokens.list),
            Route(.post, "/tokens", .anyOf(.admin), tokens.create),
            Route(.delete, "/tokens/{tokenId}", .anyOf(.admin), tokens.revoke),
        ]
    }
}
