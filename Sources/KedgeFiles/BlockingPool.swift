internal import Dispatch
internal import Glibc
internal import KedgeLocks

/// A fixed number of threads for blocking calls: file reads and writes, syncs, hashing.
///
/// Swift's cooperative pool has as many threads as cores; a few slow syncs there would stop the
/// whole process. Jobs start in the order of submission. Callers bound the number of jobs: each
/// byte stream has at most a few in progress.
package final class BlockingPool: Sendable {
    /// Accepts a job and runs it once, later.
    package typealias Starter = @Sendable (@escaping @Sendable () -> Void) -> Void

    private let start: Starter
    private let stop: @Sendable () -> Void
    /// Number of threads.
    package let threadCount: Int

    /// Starts the threads. They live as long as the pool.
    package init(threadCount: Int) {
        precondition(threadCount > 0, "a pool has at least one thread")
        self.threadCount = threadCount
        let queue = Queue()
        start = { queue.add($0) }
        stop = { queue.stop(threadCount: threadCount) }
        for _ in 0..<threadCount { startThread { queue.work() } }
    }

    /// Creates a pool without threads, for a simulation that decides when each job runs.
    ///
    /// - Parameter start: Must run the jobs in order, one at a time.
    package init(starting start: @escaping Starter) {
        self.start = start
        stop = {}
        threadCount = 1
    }

    deinit { stop() }

    /// Runs the work on a thread of the pool and returns its result. Task cancellation does not
    /// stop it: disk operations always run to their end.
    package func run<Result: Sendable>(
        _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await start(work).value()
    }

    /// Runs a computation on a thread of the pool and returns its result. Task cancellation does
    /// not stop it.
    package func compute<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result
    ) async -> Result {
        do {
            return try await start(work).value()
        } catch {
            preconditionFailure("a computation that cannot fail failed: \(error)")
        }
    }

    /// Starts the work without waiting; the caller asks for the result later.
    package func start<Result: Sendable>(
        _ work: @escaping @Sendable () throws -> Result
    ) -> PendingResult<Result> {
        let pending = PendingResult<Result>()
        start { pending.complete(with: Swift.Result { try work() }) }
        return pending
    }

    private final class Queue: Sendable {
        private struct State {
            /// A started job leaves nil behind, which frees its captured values.
            var jobs: [(@Sendable () -> Void)?] = []
            var head = 0
            var isStopped = false

            mutating func next() -> (@Sendable () -> Void)? {
                guard head < jobs.count else { return nil }
                defer {
                    jobs[head] = nil
                    head += 1
                    if head == jobs.count || head > 1024 {
                        jobs.removeFirst(head)
                        head = 0
                    }
                }
                return jobs[head]
            }
        }
        private let state = Mutex(State())
        private let available = DispatchSemaphore(value: 0)

        func add(_ job: @escaping @Sendable () -> Void) {
            state.withLock { $0.jobs.append(job) }
            available.signal()
        }

        func stop(threadCount: Int) {
            state.withLock { $0.isStopped = true }
            for _ in 0..<threadCount { available.signal() }
        }

        func work() {
            while true {
                available.wait()
                guard let job = state.withLock({ $0.next() }) else {
                    if state.withLock({ $0.isStopped }) { return }
                    continue
                }
                job()
            }
        }
    }
}

/// The result of work that was started on a ``BlockingPool``, or that another task completes.
package final class PendingResult<Value: Sendable>: Sendable {
    private enum State {
        case running([CheckedContinuation<Void, Never>])
        case done(Result<Value, any Error>)
    }
    private let state = Mutex<State>(.running([]))

    package init() {}

    /// Completes the result. The first call counts.
    package func complete(with result: Result<Value, any Error>) {
        let waiting: [CheckedContinuation<Void, Never>] = state.withLock { state in
            guard case .running(let continuations) = state else { return [] }
            state = .done(result)
            return continuations
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits for the result. Task cancellation does not end the wait.
    package func value() async throws -> Value {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                guard case .running(let others) = state else { return true }
                state = .running(others + [continuation])
                return false
            }
            if isDone { continuation.resume() }
        }
        // Under the lock, not through the continuation: the thread sanitizer cannot see the
        // hand-over of a value by a continuation that is resumed before it is awaited.
        let result: Result<Value, any Error>? = state.withLock { state in
            if case .done(let result) = state { result } else { nil }
        }
        guard let result else {
            preconditionFailure("a continuation is resumed after its result is there")
        }
        return try result.get()
    }
}

/// Starts a detached thread.
private func startThread(_ body: @escaping @Sendable () -> Void) {
    let context = Unmanaged.passRetained(ThreadBody(body: body)).toOpaque()
    var thread = pthread_t()
    let status = pthread_create(
        &thread, nil,
        { context in
            guard let context else { return nil }
            Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().body()
            return nil
        }, context)
    precondition(status == 0, "the system refused a thread at start-up")
    pthread_detach(thread)
}

private final class ThreadBody: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) { self.body = body }
}
