internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Operations on the owner of a request.
struct MeRoutes: Sendable {
    let engine: TransferEngine

    /// `GET /me`
    @Sendable func describe(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let quota = try await engine.quota(of: context.owner)
        return .json(AccountDescription(context.principal, quota))
    }
}

extension AccountDescription {
    fileprivate init(_ principal: Principal, _ quota: OwnerQuota) {
        // Zero is no limit.
        let limit: (Int64) -> Int64? = { $0 > 0 ? $0 : nil }
        self.init(
            owner: principal.owner.text, principal: principal.kind.rawValue,
            scopes: principal.scopes.map(\.rawValue).sorted(),
            limits: Limits(
                storedBytes: limit(quota.limits.storedBytes),
                openSessions: limit(quota.limits.openSessions),
                fileBytes: limit(quota.limits.fileBytes)),
            usage: Usage(
                storedBytes: quota.storedBytes, reservedBytes: quota.reservedBytes,
                openSessions: quota.openSessionCount))
    }
}
