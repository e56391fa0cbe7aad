import KedgeEngine
import Testing

@Suite struct `The progress of a body` {
    /// Slept for in real time: the measure is of the monotonic clock, and only its lower bound is
    /// judged.
    private let moment = Duration.milliseconds(30)

    @Test func `a client that waits to be asked is not slow`() async throws {
        let progress = BodyProgress()
        progress.begin(isHeldBack: true)
        progress.wait()
        try await Task.sleep(for: moment)
        #expect(progress.measure == BodyProgress.Measure())
        progress.ask()
        try await Task.sleep(for: moment)
        #expect(progress.measure.waited >= moment)
    }

    @Test func `one that does not wait is measured from its first byte on`() async throws {
        let progress = BodyProgress()
        progress.begin(isHeldBack: true)
        progress.came(5)
        progress.wait()
        try await Task.sleep(for: moment)
        progress.end()
        let measure = progress.measure
        #expect(measure.byteCount == 5)
        #expect(measure.waited >= moment)
    }
}
