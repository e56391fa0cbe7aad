internal import KedgeLocks
internal import KedgeModel

/// Which sessions that are made of others wait for which parts, so that the last part begins the making.
///
/// Only a hint, known to this process: housekeeping finds the others, on every node and after a restart.
final class WaitingCompositions: Sendable {
    private struct Entry {
        let owner: OwnerID
        let parts: Set<SessionID>
    }

    private struct State {
        var entries: [SessionID: Entry] = [:]
        /// Of each part the sessions that wait for it: every finalize asks.
        var wholes: [SessionID: Set<SessionID>] = [:]
        var partCount = 0

        mutating func insert(_ id: SessionID, _ entry: Entry) {
            entries[id] = entry
            partCount += entry.parts.count
            for part in entry.parts { wholes[part, default: []].insert(id) }
        }

        mutating func remove(_ id: SessionID) {
            guard let entry = entries.removeValue(forKey: id) else { return }
            partCount -= entry.parts.count
            for part in entry.parts {
                wholes[part]?.remove(id)
                if wholes[part]?.isEmpty == true { wholes[part] = nil }
            }
        }
    }

    /// Parts that are remembered, over all sessions; some tens of bytes each.
    private static let maxPartCount = 100_000

    private let state = Mutex(State())

    /// Remembers a session. At the limit any other is forgotten for it.
    func add(_ id: SessionID, _ parts: [SessionID], owner: OwnerID) {
        state.withLock { state in
            guard state.entries[id] == nil else { return }
            let entry = Entry(owner: owner, parts: Set(parts))
            while state.partCount + entry.parts.count > Self.maxPartCount,
                let victim = state.entries.keys.first
            {
                state.remove(victim)
            }
            state.insert(id, entry)
        }
    }

    func remove(_ id: SessionID) { state.withLock { $0.remove(id) } }

    /// The sessions of the part's owner that wait for it.
    func waiting(for part: SessionID, owner: OwnerID) -> Set<SessionID> {
        state.withLock { state in
            state.wholes[part, default: []].filter { state.entries[$0]?.owner == owner }
        }
    }
}
