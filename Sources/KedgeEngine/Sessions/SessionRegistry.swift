internal import KedgeFiles
internal import KedgeModel

/// The sessions in memory: one ``LiveSession`` a session, loaded when asked for, gone when idle.
///
/// There must never be two live objects of one session that both write: each believes that it alone
/// hands out chunks. So an object stays while it is in use, and one that is dropped in spite of that is
/// retired first and takes no writer any more.
actor SessionRegistry {
    private struct Key: Hashable {
        let id: SessionID
        let owner: OwnerID
    }

    private struct Entry {
        let session: LiveSession
        var userCount = 0
    }

    private let parts: EngineParts
    private var live: [SessionID: Entry] = [:]
    /// Those in memory that nobody uses.
    private var idle: Set<SessionID> = []
    private var isEvicting = false
    private var loading: [Key: Task<LiveSession?, any Error>] = [:]
    /// Counts drops, so that what was read before one is not taken for the truth after it.
    private var dropCount = 0

    init(parts: EngineParts) { self.parts = parts }

    /// Lends the session; it stays in memory for the time of the body.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, for a foreign id just as for an unknown one.
    nonisolated func withSession<Result>(
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

    /// The session as the store has it now.
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

    /// A session if it is in memory.
    func session(inMemory id: SessionID) -> LiveSession? { live[id]?.session }

    /// All sessions in memory.
    var sessions: [LiveSession] { live.values.map(\.session) }

    /// Takes a session out of memory after its writers have stopped.
    ///
    /// - Parameter owner: With an owner, only a session of theirs.
    func drop(_ id: SessionID, ofOwner owner: OwnerID? = nil) async {
        dropCount += 1
        guard let session = live[id]?.session, owner == nil || session.owner == owner else {
            return
        }
        await session.retire()
        if live[id]?.session === session { forget(id) }
    }

    /// Drops a session whose time is over; one that still lives is not disturbed.
    func dropExpired(_ id: SessionID, owner: OwnerID) async {
        guard let session = live[id]?.session, await session.isExpired else { return }
        await drop(id, ofOwner: owner)
    }

    /// Takes out of memory what nobody has used since the time.
    func evict(idleSince time: Timestamp) async {
        // One at a time: of a thousand requests that find too much open each would look at them all.
        guard !isEvicting, !idle.isEmpty else { return }
        isEvicting = true
        defer { isEvicting = false }
        for id in Array(idle) {
            guard let session = live[id]?.session, await session.lastUsed < time,
                await !session.prefix.isFollowing
            else { continue }
            // Somebody may have come for it during the waits.
            guard let entry = live[id], entry.session === session, entry.userCount == 0 else {
                continue
            }
            forget(id)
            await session.closeStaging()
        }
    }

    private func forget(_ id: SessionID) {
        live[id] = nil
        idle.remove(id)
    }

    private func checkOut(_ id: SessionID, _ owner: OwnerID) async throws -> LiveSession {
        if parts.openAreas.value > parts.configuration.maxIdleStagingAreas {
            await evict(idleSince: parts.clock.now())
        }
        while true {
            let session = try await find(id, owner)
            // A retired one takes no writer any more; the next round loads what is true now.
            if await session.isRetired {
                if live[id]?.session === session { forget(id) }
                continue
            }
            guard session.owner == owner else { throw EngineError(.sessionNotFound) }
            // Of several loads that ended together the first one counts.
            if let first = live[id]?.session, first !== session { continue }
            live[id, default: Entry(session: session)].userCount += 1
            idle.remove(id)
            return session
        }
    }

    private func find(_ id: SessionID, _ owner: OwnerID) async throws -> LiveSession {
        while true {
            if let known = live[id]?.session { return known }
            let before = dropCount
            guard let loaded = try await load(Key(id: id, owner: owner)) else {
                throw EngineError(.sessionNotFound)
            }
            if dropCount == before { return live[id]?.session ?? loaded }
        }
    }

    private func checkIn(_ session: LiveSession) {
        guard var entry = live[session.id], entry.session === session else { return }
        entry.userCount -= 1
        live[session.id] = entry
        if entry.userCount == 0 { idle.insert(session.id) }
    }

    private func load(_ key: Key) async throws -> LiveSession? {
        let task =
            loading[key]
            ?? Task { [parts] in
                // Shared by everybody who asks meanwhile, and awaited by each of them just below.
                try await parts.metadata.progress(of: key.id, owner: key.owner)
                    .map { LiveSession($0, parts: parts) }
            }
        loading[key] = task
        defer { loading[key] = nil }
        return try await task.value
    }
}
