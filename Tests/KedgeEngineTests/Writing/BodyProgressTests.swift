import KedgeEngine
import Testing

struct BodyProgressTests {
    /// How long the tests sleep in real time. The measure uses the monotonic clock, and the tests
    /// check only its lower bound.
    private let moment = Duration.milliseconds(30)

    @Test func `a client that waits to be asked is not slow`() async throws {
        let progress = BodyProgress()
        progress.begin(awaitsContinue: true)
        progress.wait()
        try await Task.sleep(for: moment)
        #expect(progress.measure == BodyProgress.Measure())
        progress.ask()
        try await Task.sleep(for: moment)
        #expect(progress.measure.waited >= moment)
    }

    @Test func `a client that does not wait is measured from its first byte on`() async throws {
        let progress = BodyProgress()
        progress.begin(awaitsContinue: true)
        progress.countReceived(5)
        progress.wait()
        try await Task.sleep(for: moment)
        progress.end()
        let measure = progress.measure
        #expect(measure.byteCount == 5)
        #expect(measure.waited >= moment)
    }
}
