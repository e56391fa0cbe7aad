/// The end of a wait.
struct Deadline: Sendable {
    private let instant: ContinuousClock.Instant

    static func after(_ duration: Duration) -> Deadline {
        Deadline(instant: .now.advanced(by: duration))
    }

    var isOver: Bool { instant <= .now }

    /// Time that is left; zero when it is over.
    var remaining: Duration { max(.zero, ContinuousClock.Instant.now.duration(to: instant)) }

    /// The same for `poll(2)`, rounded up, so that nobody polls through the last millisecond.
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
