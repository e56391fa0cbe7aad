import KedgeFiles
import KedgeModel

/// A clock that stands still until a test moves it.
final class ManualClock: WallClock {
    private let time = Shared(Timestamp(millisecondsSinceEpoch: 1_700_000_000_000))

    func now() -> Timestamp { time.value }

    func advance(by duration: Duration) {
        time.update { $0 = $0.advanced(by: duration) }
    }
}
