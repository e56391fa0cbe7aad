internal import KedgeLocks

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
