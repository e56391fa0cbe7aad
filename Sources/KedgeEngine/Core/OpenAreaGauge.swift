internal import KedgeLocks

/// Counts the open staging areas, because each holds a descriptor.
final class OpenAreaGauge: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    /// One open area, counted for as long as this object exists.
    final class Increment: Sendable {
        private let areas: OpenAreaGauge

        init(_ areas: OpenAreaGauge) {
            self.areas = areas
            areas.count.withLock { $0 += 1 }
        }

        deinit { areas.count.withLock { $0 -= 1 } }
    }
}
