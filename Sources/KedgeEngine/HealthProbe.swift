internal import KedgeModel

/// Whether the stores do their work, tried at most once a second for all callers together.
///
/// A try writes and syncs, and anybody may ask. Callers during a try share its result; within a second
/// of its end the result answers, failures too.
actor HealthProbe {
    /// Time for which a result answers.
    static let lifetime = Duration.seconds(1)
    /// A try that takes longer is taken for a store that hangs: callers are refused instead of waiting.
    static let patience = Duration.seconds(10)

    private struct Running {
        let task: Task<Void, any Error>
        let start: Duration
    }

    private struct Ended {
        let result: Result<Void, any Error>
        let time: Duration
    }

    private let elapsed: @Sendable () -> Duration
    private let attempt: @Sendable () async throws -> Void
    private var running: Running?
    private var last: Ended?

    /// - Parameters:
    ///   - clock: Tells the age of a result.
    ///   - attempt: Succeeds when the stores answer and can write.
    init(clock: some Clock<Duration>, attempt: @escaping @Sendable () async throws -> Void) {
        let origin = clock.now
        elapsed = { origin.duration(to: clock.now) }
        self.attempt = attempt
    }

    /// Succeeds when the latest try did.
    ///
    /// - Throws: What the try threw; `UNAVAILABLE` while one hangs.
    func check() async throws {
        if let last, elapsed() - last.time < Self.lifetime { return try last.result.get() }
        if let running {
            guard elapsed() - running.start < Self.patience else {
                throw EngineError(.unavailable, cause: "the last check of the stores hangs")
            }
            return try await running.task.value
        }
        // Awaited by its callers and by `finish`. One caller that leaves must not cancel it for the others.
        let task = Task { try await attempt() }
        running = Running(task: task, start: elapsed())
        let result = await task.result
        running = nil
        last = Ended(result: result, time: elapsed())
        try result.get()
    }

    /// Returns when no try is under way.
    func finish() async { _ = await running?.task.result }
}
