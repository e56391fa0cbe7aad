internal import KedgeLocks
internal import KedgeModel

/// What is known of one chunk at one moment.
struct ChunkView: Sendable {
    let layout: ChunkLayout
    /// Set when the chunk is committed.
    let digest: SHA256Digest?
    let partial: PartialRecord?
}

/// How many staging areas are open: each holds a descriptor, and a process has only so many.
final class OpenAreaCount: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }
    func add(_ change: Int) { count.withLock { $0 += change } }
}
