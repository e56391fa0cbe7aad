internal import KedgeLocks
internal import KedgeModel

/// The fencing tokens of chunks that this node writes, so that their leases are renewed together.
final class HeldFencingTokens: Sendable {
    private struct Entry {
        let session: SessionID
        let stop: @Sendable () -> Void
    }

    private let entries = Mutex<[FencingToken: Entry]>([:])

    func add(_ token: FencingToken, of id: SessionID, stop: @escaping @Sendable () -> Void) {
        entries.withLock { $0[token] = Entry(session: id, stop: stop) }
    }

    func remove(_ token: FencingToken) { entries.withLock { _ = $0.removeValue(forKey: token) } }

    /// Returns the tokens of one session, or all tokens.
    func tokens(of id: SessionID? = nil) -> [(id: SessionID, token: FencingToken)] {
        entries.withLock { entries in
            entries.filter { id == nil || $0.value.session == id }
                .map { (id: $0.value.session, token: $0.key) }
        }
    }

    /// Stops the writer of a chunk that another node wants.
    func stop(_ token: FencingToken) { entries.withLock { $0[token]?.stop }?() }
}
