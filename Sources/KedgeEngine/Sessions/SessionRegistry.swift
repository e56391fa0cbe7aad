internal import KedgeModel

/// The sessions in memory: one ``LiveSession`` a session, loaded when asked for, gone when idle.
actor SessionRegistry {
    private let parts: EngineParts
    private var live: [SessionID: LiveSession] = [:]
    private var loading: [SessionID: Task<LiveSession?, any Error>] = [:]

    init(parts: EngineParts) { self.parts = parts }

    /// The session, or an error that does not tell a foreign id from an unknown one.
    func session(_ id: SessionID, owner: OwnerID) async throws -> LiveSession {
        if let session = live[id] {
            guard session.owner == owner else { throw EngineError(.sessionNotFound) }
            return session
        }
        let task = loading[id] ?? Task { [parts] in
            // Shared by everybody who asks meanwhile, and awaited by each of them just below.
            try await parts.metadata.progress(of: id, owner: owner)
                .map { LiveSession($0, parts: parts) }
        }
        loading[id] = task
        defer { loading[id] = nil }
        guard let loaded = try await task.value, loaded.owner == owner else {
            throw EngineError(.sessionNotFound)
        }
        if let session = live[id] { return session }
        live[id] = loaded
        return loaded
    }

    /// All sessions in memory.
    var sessions: [LiveSession] { Array(live.values) }

    /// Takes a session out of memory after its writers have stopped.
    ///
    /// - Parameter owner: With an owner, only a session of theirs.
    func drop(_ id: SessionID, ofOwner owner: OwnerID? = nil) async {
        guard let session = live[id], owner == nil || session.owner == owner else { return }
        await session.interruptWriters(.sessionClosed)
        await session.closeStaging()
        live[id] = nil
    }

    /// Takes out of memory what nobody has used since the time.
    func evict(idleSince time: Timestamp) async {
        for (id, session) in live {
            guard await session.isIdle, await session.lastUsed < time else { continue }
            guard await !session.prefix.isFollowing else { continue }
            await session.closeStaging()
            // Somebody may have come for it during the waits.
            if await session.lastUsed < time, await session.isIdle { live[id] = nil }
        }
    }
}
