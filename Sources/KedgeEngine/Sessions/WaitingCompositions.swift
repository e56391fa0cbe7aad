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
        var partCount = 0
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
                let victim = state.entries.popFirst()
            {
                state.partCount -= victim.value.parts.count
            }
            state.entries[id] = entry
            state.partCount += entry.parts.count
        }
    }

    func remove(_ id: SessionID) {
        state.withLock { state in
            if let entry = state.entries.removeValue(forKey: id) {
                state.partCount -= entry.parts.count
            }
        }
    }

    /// The sessions of the part's owner that wait for it.
    func waiting(for part: SessionID, owner: OwnerID) -> [SessionID] {
        state.withLock { state in
            state.entries.filter { $0.value.owner == owner && $0.value.parts.contains(part) }
                .map(\.key)
        }
    }
}
