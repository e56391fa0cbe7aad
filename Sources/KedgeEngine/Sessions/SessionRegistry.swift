internal import KedgeFiles
package import KedgeModel

/// The sessions in memory: one ``LiveSession`` for each, loaded on demand and evicted when idle.
///
/// Two objects of one session must never write at once, because each assumes that it alone hands
/// out chunks. An object therefore stays in memory while it is in use. One that is dropped while in
/// use is retired first and accepts no more writers.
package actor SessionRegistry {
    private struct Key: Hashable {
        let id: SessionID
        let owner: OwnerID
    }

    private struct Entry {
        let session: LiveSession
        var userCount = 0
    }

    private let context: EngineContext
    private var entries: [SessionID: Entry] = [:]
    /// Sessions in memory that no caller uses.
    private var idle: Set<SessionID> = []
    private var isEvicting = false
    private var loading: [Key: Task<LiveSession?, any Error>] = [:]
    /// Incremented on every drop; invalidates loads started earlier.
    private var dropCount = 0

    init(context: EngineContext) { self.context = context }

    /// Lends the session to the closure. It stays in memory meanwhile.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, also for a session of another owner.
    package nonisolated func withSession<Result>(
        _ id: SessionID, owner: OwnerID, _ body: (LiveSession) async throws -> Result
    ) async throws -> Result {
        let session = try await checkOutCurrent(id, owner)
        do {
            let result = try await body(session)
            await checkIn(session)
            return result
        } catch {
            await checkIn(session)
            throw error
        }
    }

    /// Returns the session in the store's current state.
    private nonisolated func checkOutCurrent(
        _ id: SessionID, _ owner: OwnerID
    ) async throws -> LiveSession {
        while true {
            let session = try await checkOut(id, owner)
            do {
                try await session.refresh()
                guard await session.isRetired else { return session }
                await checkIn(session)
            } catch {
                await checkIn(session)
                throw error
            }
        }
    }

    /// Returns the session if it is in memory.
    func session(inMemory id: SessionID) -> LiveSession? { entries[id]?.session }

    /// All sessions in memory.
    package var sessions: [LiveSession] { entries.values.map(\.session) }

    /// Removes a session from memory after its writers have stopped.
    ///
    /// - Parameter owner: Drops the session only if it belongs to this owner; nil for any owner.
    func drop(_ id: SessionID, ofOwner owner: OwnerID? = nil) async {
        dropCount += 1
        guard let session = entries[id]?.session, owner == nil || session.owner == owner else {
            return
        }
        await session.retire()
        if entries[id]?.session === session { forget(id) }
    }

    /// Drops a session that has expired; does nothing for any other.
    func dropExpired(_ id: SessionID, owner: OwnerID) async {
        guard let session = entries[id]?.session, await session.isExpired else { return }
        await drop(id, ofOwner: owner)
    }

    /// Removes sessions from memory that are idle and were last used before the time.
    func evict(idleSince time: Timestamp) async {
        // One eviction at a time: otherwise each of a thousand requests above the limit would look
        // at all idle sessions.
        guard !isEvicting, !idle.isEmpty else { return }
        isEvicting = true
        defer { isEvicting = false }
        for id in Array(idle) {
            guard let session = entries[id]?.session, await session.lastUsed < time,
                await !session.prefix.isReadingBack
            else { continue }
            // A request may have taken it during the waits.
            guard let entry = entries[id], entry.session === session, entry.userCount == 0 else {
                continue
            }
            forget(id)
            await session.closeStaging()
        }
    }

    private func forget(_ id: SessionID) {
        entries[id] = nil
        idle.remove(id)
    }

    private func checkOut(_ id: SessionID, _ owner: OwnerID) async throws -> LiveSession {
        if context.openAreas.value > context.configuration.maxIdleStagingAreas {
            await evict(idleSince: context.clock.now())
        }
        while true {
            let session = try await find(id, owner)
            // A retired session accepts no writers; the next round loads the current state.
            if await session.isRetired {
                if entries[id]?.session === session { forget(id) }
                continue
            }
            guard session.owner == owner else {
                // As for an unknown id: the time of the answer must not show that there is one.
                _ = try await load(Key(id: id, owner: owner))
                throw EngineError(.sessionNotFound)
            }
            // If several loads ended together, the first one counts.
            if let first = entries[id]?.session, first !== session { continue }
            entries[id, default: Entry(session: session)].userCount += 1
            idle.remove(id)
            return session
        }
    }

    private func find(_ id: SessionID, _ owner: OwnerID) async throws -> LiveSession {
        while true {
            if let known = entries[id]?.session { return known }
            let before = dropCount
            guard let loaded = try await load(Key(id: id, owner: owner)) else {
                throw EngineError(.sessionNotFound)
            }
            if dropCount == before { return entries[id]?.session ?? loaded }
        }
    }

    private func checkIn(_ session: LiveSession) {
        guard var entry = entries[session.id], entry.session === session else { return }
        entry.userCount -= 1
        entries[session.id] = entry
        if entry.userCount == 0 { idle.insert(session.id) }
    }

    private func load(_ key: Key) async throws -> LiveSession? {
        let task =
            loading[key]
            ?? Task { [context] in
                // Shared by all callers that ask meanwhile; each of them awaits it below.
                try await context.metadata.progress(of: key.id, owner: key.owner)
                    .map { LiveSession($0, context: context) }
            }
        loading[key] = task
        defer { loading[key] = nil }
        return try await task.value
    }
}
