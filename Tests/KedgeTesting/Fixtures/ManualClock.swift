internal import KedgeFiles
package import KedgeModel

/// A clock that stands still until a test moves it.
package final class ManualClock: WallClock {
    private let time = Shared(Timestamp(millisecondsSinceEpoch: 1_700_000_000_000))

    package init() {}

    package func now() -> Timestamp { time.value }

    package func advance(by duration: Duration) {
        time.update { $0 = $0.advanced(by: duration) }
    }
}
