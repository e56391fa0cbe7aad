internal import Foundation
internal import Hummingbird
internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

/// Operations on owners: list, show, set limits, block.
struct OwnerRoutes: Sendable {
    let administration: Administration?

    /// `GET /owners`
    @Sendable func list(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let limit = try ListLimit.count(of: request, standard: 100, max: 1000)
        let after = try request.uri.queryParameters.get("after").map { text in
            guard let owner = OwnerID(checking: text) else {
                throw EngineError(.badRequest, "after is not a cursor of this list.")
            }
            return owner
        }
        let owners = try await store().owners(after: after, limit: limit + 1)
        let page = owners.prefix(limit)
        return .json(
            OwnerList(
                owners: page.map { OwnerDescription($0) },
                next: owners.count > limit ? page.last?.owner.text : nil))
    }

    /// `GET /owners/{owner}`
    @Sendable func show(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        guard let owner = Self.owner(of: context) else { throw EngineError(.notFound) }
        context.logMetadata.set("object", "owner \(owner)")
        guard let record = try await store().owner(owner) else { throw EngineError(.notFound) }
        return .json(OwnerDescription(record))
    }

    /// `PUT /owners/{owner}`: also for an owner that has not uploaded anything yet.
    @Sendable func change(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        guard let owner = Self.owner(of: context) else {
            throw EngineError(.badRequest, InvalidToken.owner.description)
        }
        context.logMetadata.set("object", "owner \(owner)")
        let message = try await JSONBody.decode(OwnerChange.self, from: request, context)
        let changes = [
            message.limits.map { _ in "limits" },
            message.isBlocked.map { $0 ? "block" : "unblock" },
        ].compactMap { $0 }
        if !changes.isEmpty {
            context.logMetadata.set("change", changes.joined(separator: ","))
        }
        let limits = try message.limits.map { values in
            guard let limits = OwnerLimits(values) else {
                throw EngineError(.badRequest, "A limit must not be negative.")
            }
            return limits
        }
        guard limits != nil || message.isBlocked != nil else {
            throw EngineError(.badRequest, "The body must have limits or isBlocked.")
        }
        let store = try store()
        if let limits { try await store.setLimits(limits, of: owner) }
        if let isBlocked = message.isBlocked {
            try await store.setBlocked(isBlocked, of: owner)
            // In a fleet, other nodes are notified by the store.
            administration?.onChange(.owner(owner))
        }
        guard let record = try await store.owner(owner) else { throw EngineError(.notFound) }
        return .json(OwnerDescription(record))
    }

    /// The owner that the path names, percent-encoded; nil for text that names none.
    private static func owner(of context: KedgeRequestContext) -> OwnerID? {
        context.parameters.get("owner")?.removingPercentEncoding
            .flatMap { OwnerID(checking: $0) }
    }

    private func store() throws -> any OwnerStore {
        guard let administration else { throw EngineError(.routeNotFound) }
        return administration.owners
    }
}

extension OwnerDescription {
    package init(_ record: OwnerRecord) {
        self.init(
            owner: record.owner.text, isBlocked: record.isBlocked,
            limits: OwnerLimitValues(record.limits), storedBytes: record.usage.storedBytes,
            reservedBytes: record.usage.reservedBytes, openSessions: record.usage.openSessions)
    }
}

extension OwnerLimitValues {
    package init(_ limits: OwnerLimits) {
        self.init(
            maxStoredBytes: limits.maxStoredBytes,
            maxOpenSessions: limits.maxOpenSessions.map { Int64($0) },
            maxFileBytes: limits.maxFileBytes)
    }
}

extension OwnerLimits {
    /// Returns nil for a negative limit.
    package init?(_ values: OwnerLimitValues) {
        let all = [values.maxStoredBytes, values.maxOpenSessions, values.maxFileBytes]
        guard all.allSatisfy({ $0.map { $0 >= 0 } ?? true }) else { return nil }
        self.init(
            maxStoredBytes: values.maxStoredBytes,
            maxOpenSessions: values.maxOpenSessions.map { Int($0) },
            maxFileBytes: values.maxFileBytes)
    }
}
