internal import KedgeLocks

/// Lets a warning pass at most once a minute, so that clients cannot fill the log.
package final class WarningPace: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Time between two warnings.
    package static let interval = Duration.seconds(60)

    private let now: @Sendable () -> Instant
    private let last = Mutex<Instant?>(nil)

    package init(now: @escaping @Sendable () -> Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Whether a warning is due. It counts as given.
    package func isDue() -> Bool {
        let now = now()
        return last.withLock { last in
            if let last, last.duration(to: now) < Self.interval { return false }
            last = now
            return true
        }
    }
}
