internal import KedgeLocks
internal import KedgeModel

/// What is known of one chunk at one moment.
struct ChunkView: Sendable {
    let layout: ChunkLayout
    /// Set when the chunk is committed.
    let digest: SHA256Digest?
    let partial: PartialRecord?
    /// The first bytes of another body.
    let rival: PartialRecord?
}

/// How many staging areas are open: each holds a descriptor, and a process has only so many.
final class OpenAreaCount: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    /// Counts one area for as long as somebody keeps this.
    final class Mark: Sendable {
        private let areas: OpenAreaCount

        init(_ areas: OpenAreaCount) {
            self.areas = areas
            areas.count.withLock { $0 += 1 }
        }

        deinit { areas.count.withLock { $0 -= 1 } }
    }
}
