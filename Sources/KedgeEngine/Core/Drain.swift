internal import KedgeLocks

/// Records that the service is stopping. Set once, before the bodies under way are stopped.
final class Drain: Sendable {
    private let hasBegun = Mutex(false)

    /// True once the bodies under way are being stopped.
    var isUnderWay: Bool { hasBegun.withLock { $0 } }

    func begin() { hasBegun.withLock { $0 = true } }
}
