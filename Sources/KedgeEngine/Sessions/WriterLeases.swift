internal import KedgeLocks
internal import KedgeModel

/// The chunks that this node writes in the eyes of the others, so that their leases are renewed together.
final class WriterLeases: Sendable {
    private struct Entry {
        let session: SessionID
        let stop: @Sendable () -> Void
    }

    private let entries = Mutex<[WriterToken: Entry]>([:])

    func add(_ token: WriterToken, of id: SessionID, stop: @escaping @Sendable () -> Void) {
        entries.withLock { $0[token] = Entry(session: id, stop: stop) }
    }

    func remove(_ token: WriterToken) { entries.withLock { _ = $0.removeValue(forKey: token) } }

    /// Those of one session, or all.
    func tokens(of id: SessionID? = nil) -> [(id: SessionID, token: WriterToken)] {
        entries.withLock { entries in
            entries.filter { id == nil || $0.value.session == id }
                .map { (id: $0.value.session, token: $0.key) }
        }
    }

    /// Stops a writer that another node wants to follow.
    func stop(_ token: WriterToken) { entries.withLock { $0[token]?.stop }?() }
}
