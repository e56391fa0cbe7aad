internal import Glibc
package import KedgeModel

/// The time of day, as a parameter, so that tests of expiry can set it.
package protocol WallClock: Sendable {
    func now() -> Timestamp
}

/// The system's time of day.
package struct SystemWallClock: WallClock {
    package init() {}

    package func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(
            millisecondsSinceEpoch: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
