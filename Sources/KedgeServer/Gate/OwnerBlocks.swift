package import KedgeIdentity
internal import KedgeLocks
package import KedgeModel

/// Refuses the principals of blocked owners.
///
/// The answer of the store is kept for ``cacheLifetime``. A block, and its end, count after that
/// time at the latest. Concurrent requests of one owner share one read.
package final class OwnerBlocks: Sendable {
    private struct Entry {
        let isBlocked: Bool
        let readAt: Timestamp
    }

    private struct Read {
        let task: Task<Bool, any Error>
        /// The count of changes when it began. A later read of the owner has a larger one.
        let changeCount: Int
    }

    private struct State {
        var entries: [OwnerID: Entry] = [:]
        var reads: [OwnerID: Read] = [:]
        /// Grows with each change that was reported. An answer read before one is not kept.
        var changeCount = 0
    }

    /// Time for which an owner is not read again.
    package static let cacheLifetime = Duration.seconds(10)
    /// Maximum number of kept owners.
    package static let cacheLimit = 10_000

    private let store: any OwnerStore
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    /// - Parameter now: The clock of the rows.
    package init(store: any OwnerStore, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.now = now
    }

    /// Returns whether the principal must be refused: its own owner is blocked, or the one that it
    /// acts for. An administrator may act for a blocked owner, to see and remove what it has.
    ///
    /// - Throws: An error of the store. The request fails then: an owner that cannot be read is not
    ///   let in.
    package func refuses(_ principal: Principal) async throws -> Bool {
        // The account of the service on its own machine can end any block.
        guard principal.kind != .local else { return false }
        guard let own = principal.actingOwner else { return try await isBlocked(principal.owner) }
        if try await isBlocked(own) { return true }
        guard !principal.scopes.contains(.admin) else { return false }
        return try await isBlocked(principal.owner)
    }

    /// Reads the owner again for its next request, because it has changed.
    package func forget(_ owner: OwnerID) {
        state.withLock { state in
            state.changeCount += 1
            state.entries[owner] = nil
            state.reads[owner] = nil
        }
    }

    private enum Answer {
        case kept(Bool)
        case read(Task<Bool, any Error>)
    }

    private func isBlocked(_ owner: OwnerID) async throws -> Bool {
        let now = now()
        let answer = state.withLock { state -> Answer in
            if let entry = state.entries[owner], Self.isFresh(entry, at: now) {
                return .kept(entry.isBlocked)
            }
            if let read = state.reads[owner] { return .read(read.task) }
            // Awaited by this request, and by those of the owner that come meanwhile. It removes
            // itself only after this closure has added it, because that needs the lock.
            let changeCount = state.changeCount
            let task = Task { [self] in try await read(owner, at: now, after: changeCount) }
            state.reads[owner] = Read(task: task, changeCount: changeCount)
            return .read(task)
        }
        switch answer {
        case .kept(let isBlocked): return isBlocked
        case .read(let task): return try await task.value
        }
    }

    private func read(
        _ owner: OwnerID, at now: Timestamp, after changeCount: Int
    ) async throws -> Bool {
        defer {
            state.withLock { state in
                // Otherwise the owner has changed, and a later read may have taken its place. A
                // change of another owner counts for nothing here: a read that stayed would be
                // the answer for ever.
                if state.reads[owner]?.changeCount == changeCount { state.reads[owner] = nil }
            }
        }
        let isBlocked = try await store.owner(owner)?.isBlocked ?? false
        state.withLock { state in
            guard state.changeCount == changeCount else { return }
            if state.entries.count >= Self.cacheLimit, state.entries[owner] == nil {
                state.entries = state.entries.filter { Self.isFresh($0.value, at: now) }
                if state.entries.count >= Self.cacheLimit { state.entries = [:] }
            }
            state.entries[owner] = Entry(isBlocked: isBlocked, readAt: now)
        }
        return isBlocked
    }

    /// Whether the owner was read lately. A clock that went back makes it stale.
    private static func isFresh(_ entry: Entry, at now: Timestamp) -> Bool {
        entry.readAt <= now && now.duration(since: entry.readAt) < cacheLifetime
    }
}
