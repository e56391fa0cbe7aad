internal import HTTPTypes
internal import KedgeIdentity

/// All operations for operators. Each needs the scope `admin`.
struct AdminRoutes: Sendable {
    let routes: [Route]

    init(_ administration: Administration?) {
        let tokens = TokenRoutes(administration: administration)
        let owners = OwnerRoutes(administration: administration)
        routes = [
            Route(.get, "/tokens", .anyOf(.admin), tokens.list),
            Route(.post, "/tokens", .anyOf(.admin), tokens.create),
            Route(.delete, "/tokens/{tokenId}", .anyOf(.admin), tokens.revoke),
            Route(.get, "/owners", .anyOf(.admin), owners.list),
            Route(.get, "/owners/{owner}", .anyOf(.admin), owners.show),
            Route(.put, "/owners/{owner}", .anyOf(.admin), owners.change),
        ]
    }
}
