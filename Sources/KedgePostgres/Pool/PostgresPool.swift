internal import Dispatch
internal import KedgeEngine
internal import KedgeLocks
internal import KedgeMetrics

/// A fixed number of threads, each with its own connection, that run operations from one queue.
///
/// libpq blocks, and Swift's cooperative pool must not. Cancelling a task does not abandon its
/// operation: the outcome of a write is always reported.
final class PostgresPool: Sendable {
    private struct Job: Sendable {
        let deadline: Deadline
        let run: @Sendable (ReconnectingConnection, Deadline) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var isStopped = false
        /// Running threads.
        var threadCount = 0
        var whenStopped: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)
    private let configuration: PostgresConfiguration

    /// Starts the threads. They connect with the first operation.
    init(
        _ string: ConnectionString, configuration: PostgresConfiguration, clock: DatabaseClock,
        metrics: Metrics = Metrics(), onNotice: @escaping @Sendable (String) -> Void
    ) throws(MetadataError) {
        self.configuration = configuration
        for _ in 0..<string.poolSize {
            state.withLock { $0.threadCount += 1 }
            let isStarted = DetachedThread.start {
                self.work(
                    ReconnectingConnection(
                        string, configuration: configuration, clock: clock, metrics: metrics,
                        onNotice: onNotice))
            }
            guard isStarted else {
                state.withLock { $0.threadCount -= 1 }
                stopTaking()
                throw .unavailable("a thread for a connection cannot be started")
            }
        }
    }

    /// Runs an operation on a thread of the pool. Its timeout starts now.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (ReconnectingConnection, Deadline) throws -> Value
    ) async throws -> Value {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            let job = Job(deadline: .after(configuration.timeout)) { link, deadline in
                continuation.resume(
                    returning: Result {
                        // Fail it at once: the operations behind it have waited for less time.
                        guard !deadline.isOver else {
                            throw MetadataError.unavailable("the database is too busy")
                        }
                        return try body(link, deadline)
                    })
            }
            if let refusal = add(job) { continuation.resume(returning: .failure(refusal)) }
        }
        return try result.get()
    }

    /// Finishes the queued operations, refuses later ones, and returns when the connections are
    /// closed.
    func close() async {
        stopTaking()
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.threadCount > 0 else { return true }
                state.whenStopped.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    private func stopTaking() {
        let threadCount = state.withLock { state in
            state.isStopped = true
            return state.threadCount
        }
        for _ in 0..<threadCount { available.signal() }
    }

    /// Queues the job, or returns the reason for refusing it.
    private func add(_ job: Job) -> MetadataError? {
        let refusal: MetadataError? = state.withLock { state in
            if state.isStopped { return .unavailable("the database is closed") }
            guard state.jobs.count < configuration.waitingLimit else {
                return .unavailable("too many operations wait for the database")
            }
            state.jobs.append(job)
            return nil
        }
        if refusal == nil { available.signal() }
        return refusal
    }

    private func work(_ link: ReconnectingConnection) {
        while true {
            available.wait()
            let (job, isStopped) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isStopped)
            }
            if let job {
                job.run(link, job.deadline)
            } else if isStopped {
                break
            }
        }
        link.disconnect()
        let waiting = state.withLock { state in
            state.threadCount -= 1
            return state.threadCount == 0 ? state.whenStopped : []
        }
        for continuation in waiting { continuation.resume() }
    }
}
