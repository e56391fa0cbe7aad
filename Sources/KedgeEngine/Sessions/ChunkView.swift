internal import KedgeLocks
internal import KedgeModel

/// A snapshot of one chunk's state.
struct ChunkView: Sendable {
    let layout: ChunkLayout
    /// Set when the chunk is committed.
    let digest: SHA256Digest?
    let partial: PartialRecord?
    /// The durable first bytes of another body.
    let rival: PartialRecord?
}

/// Counts the open staging areas, because each holds a descriptor.
final class OpenAreaCount: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    /// Counts one area for as long as the mark exists.
    final class Mark: Sendable {
        private let areas: OpenAreaCount

        init(_ areas: OpenAreaCount) {
            self.areas = areas
            areas.count.withLock { $0 += 1 }
        }

        deinit { areas.count.withLock { $0 -= 1 } }
    }
}
