internal import KedgeLocks
internal import KedgeModel

/// The final uploads that wait for partial uploads, so that the last one starts the concatenation.
///
/// Best effort and known only to this process: the sweep finds the rest, on every node and after a
/// restart.
final class WaitingConcatenations: Sendable {
    private struct Entry {
        let owner: OwnerID
        let sources: Set<SessionID>
    }

    private struct State {
        var entries: [SessionID: Entry] = [:]
        /// Final uploads by the partial upload that they wait for; every finalize looks here.
        var finalUploads: [SessionID: Set<SessionID>] = [:]
        var sourceCount = 0

        mutating func insert(_ id: SessionID, _ entry: Entry) {
            entries[id] = entry
            sourceCount += entry.sources.count
            for source in entry.sources { finalUploads[source, default: []].insert(id) }
        }

        mutating func remove(_ id: SessionID) {
            guard let entry = entries.removeValue(forKey: id) else { return }
            sourceCount -= entry.sources.count
            for source in entry.sources {
                finalUploads[source]?.remove(id)
                if finalUploads[source]?.isEmpty == true { finalUploads[source] = nil }
            }
        }
    }

    /// Maximum number of partial uploads remembered, over all sessions; each takes some tens of
    /// bytes.
    private static let maxSourceCount = 100_000

    private let state = Mutex(State())

    /// Remembers a session. At the limit, arbitrary other sessions are forgotten.
    func add(_ id: SessionID, _ sources: [SessionID], owner: OwnerID) {
        state.withLock { state in
            guard state.entries[id] == nil else { return }
            let entry = Entry(owner: owner, sources: Set(sources))
            while state.sourceCount + entry.sources.count > Self.maxSourceCount,
                let victim = state.entries.keys.first
            {
                state.remove(victim)
            }
            state.insert(id, entry)
        }
    }

    func remove(_ id: SessionID) { state.withLock { $0.remove(id) } }

    /// Returns the sessions of this owner that wait for the partial upload.
    func waiting(for source: SessionID, owner: OwnerID) -> Set<SessionID> {
        state.withLock { state in
            state.finalUploads[source, default: []].filter { state.entries[$0]?.owner == owner }
        }
    }
}
