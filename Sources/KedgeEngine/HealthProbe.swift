internal import KedgeModel

/// Checks that the stores work, at most once a second for all callers together.
///
/// An attempt writes and syncs, and any client can cause one. Callers during an attempt share its
/// result. For a second after its end, callers get the same result, including failures.
actor HealthProbe {
    /// Time for which a result is reused.
    static let lifetime = Duration.seconds(1)
    /// Time after which callers stop waiting for an attempt. A store that hangs counts as
    /// unavailable.
    static let timeout = Duration.seconds(10)

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
    ///   - clock: Measures the age of a result.
    ///   - attempt: Succeeds when the stores answer and can write.
    init(clock: some Clock<Duration>, attempt: @escaping @Sendable () async throws -> Void) {
        let origin = clock.now
        elapsed = { origin.duration(to: clock.now) }
        self.attempt = attempt
    }

    /// Checks the stores, or returns the result of an attempt under way or just ended.
    ///
    /// - Throws: The error of the attempt; `UNAVAILABLE` while an attempt hangs.
    func check() async throws {
        if let last, elapsed() - last.time < Self.lifetime { return try last.result.get() }
        if let running {
            return try await wait(
                for: running.task, atMost: Self.timeout - (elapsed() - running.start))
        }
        // Awaited by its callers and by `finish`. A caller that leaves must not cancel it for the
        // other callers.
        let task = Task {
            let result = await Result { try await attempt() }
            end(result)
            try result.get()
        }
        running = Running(task: task, start: elapsed())
        try await wait(for: task, atMost: Self.timeout)
    }

    private func end(_ result: Result<Void, any Error>) {
        running = nil
        last = Ended(result: result, time: elapsed())
    }

    /// Waits for an attempt, at most until the timeout.
    private func wait(for task: Task<Void, any Error>, atMost timeout: Duration) async throws {
        let hangs = EngineError(.unavailable, cause: "the check of the stores timed out")
        guard timeout > .zero else { throw hangs }
        let (ends, end) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        // Both tasks end by themselves: with the attempt, and with the timeout.
        Task { end.yield(await task.result) }
        let timeout = Task {
            try await Task.sleep(for: timeout)
            end.yield(.failure(hangs))
        }
        defer { timeout.cancel() }
        for await result in ends { return try result.get() }
        throw CancellationError()
    }

    /// Waits until no attempt is under way.
    func finish() async { _ = await running?.task.result }
}
