/// The end of a wait.
struct Deadline: Sendable {
    private let instant: ContinuousClock.Instant

    static func after(_ duration: Duration) -> Deadline {
        Deadline(instant: .now.advanced(by: duration))
    }

    var isOver: Bool { instant <= .now }

    /// The remaining time; zero after the deadline.
    var remaining: Duration { max(.zero, ContinuousClock.Instant.now.duration(to: instant)) }

    /// The remaining time for `poll(2)`, rounded up to avoid polling through the last millisecond.
    var remainingMilliseconds: Int32 {
        isOver ? 0 : Int32(clamping: remaining.milliseconds + 1)
    }
}

extension Duration {
    /// Whole milliseconds, for settings.
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
