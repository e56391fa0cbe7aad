import KedgeFiles
import KedgeLocks
import KedgeModel

/// A clock that stands still until a test moves it.
final class ManualClock: WallClock {
    private let time = Mutex(Timestamp(millisecondsSinceEpoch: 1_700_000_000_000))

    func now() -> Timestamp { time.withLock { $0 } }

    func advance(by duration: Duration) {
        time.withLock { $0 = $0.advanced(by: duration) }
    }
}
