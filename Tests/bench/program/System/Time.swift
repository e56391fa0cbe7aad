internal import Glibc

/// Measures the seconds that the closure takes.
func elapsedSeconds(of body: () throws -> Void) rethrows -> Double {
    let began = ContinuousClock.now
    try body()
    return elapsedSeconds(since: began)
}

func elapsedSeconds(since began: ContinuousClock.Instant) -> Double {
    (ContinuousClock.now - began) / .seconds(1)
}

/// Blocks the calling thread.
func pause(seconds: Double) {
    usleep(UInt32(max(0, seconds) * 1_000_000))
}
