internal import KedgeLocks
internal import KedgeModel

/// Sessions to which this process is writing bodies. Their rows may not count a byte yet.
final class BusySessions: Sendable {
    private let counts = Mutex<[SessionID: Int]>([:])

    var ids: Set<SessionID> { counts.withLock { Set($0.keys) } }

    func enter(_ id: SessionID) { counts.withLock { $0[id, default: 0] += 1 } }

    func leave(_ id: SessionID) {
        counts.withLock { counts in
            let rest = (counts[id] ?? 0) - 1
            counts[id] = rest > 0 ? rest : nil
        }
    }
}
