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
            return try await wait(
                for: running.task, atMost: Self.patience - (elapsed() - running.start))
        }
        // Awaited by its callers and by `finish`. One caller that leaves must not cancel it for the others.
        let task = Task {
            let result = await Result { try await attempt() }
            end(result)
            try result.get()
        }
        running = Running(task: task, start: elapsed())
        try await wait(for: task, atMost: Self.patience)
    }

    private func end(_ result: Result<Void, any Error>) {
        running = nil
        last = Ended(result: result, time: elapsed())
    }

    /// Waits for a try, but not for ever: a store that hangs is one that does not work.
    private func wait(for task: Task<Void, any Error>, atMost patience: Duration) async throws {
        let hangs = EngineError(.unavailable, cause: "the check of the stores hangs")
        guard patience > .zero else { throw hangs }
        let (ends, end) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        // Each ends by itself: one with the try, the other with the patience.
        Task { end.yield(await task.result) }
        let timeout = Task {
            try await Task.sleep(for: patience)
            end.yield(.failure(hangs))
        }
        defer { timeout.cancel() }
        for await result in ends { return try result.get() }
        throw CancellationError()
    }

    /// Returns when no try is under way.
    func finish() async { _ = await running?.task.result }
}
