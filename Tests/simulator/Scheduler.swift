import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeTesting

/// Runs all work of a simulated world, one piece at a time, in an order drawn from a seed: the same
/// seed gives the same run.
///
/// Tasks arrive through ``TaskCapture``, blocking work through the pools made here, and waits
/// through ``sleep(for:)``. Time passes a little with each step, and at once when all wait.
final class Scheduler: Sendable {
    private enum Ready: Sendable {
        case job(UnownedJob)
        case work(@Sendable () -> Void)
    }

    private struct Sleeper: Sendable {
        let deadline: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State: Sendable {
        var generator: SplitMix64
        var ready: [Ready] = []
        var sleepers: [Int: Sleeper] = [:]
        var nextSleeper = 0
        var now = Duration.zero
        var stepCount = 0
        /// A hash of all steps and their order.
        var trace = TraceHash()

        /// Removes and returns the waits whose time has come.
        mutating func wake() -> [CheckedContinuation<Void, any Error>] {
            let due = sleepers.filter { $0.value.deadline <= now }
                .sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }
            for (number, _) in due { sleepers[number] = nil }
            return due.map(\.value.continuation)
        }
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(generator: SplitMix64(seed: seed))) }

    var stepCount: Int { state.withLock { $0.stepCount } }
    /// Time since the world began.
    var now: Duration { state.withLock { $0.now } }
    /// A hash that differs when two runs differ in a traced event.
    var traceHash: UInt64 { state.withLock { $0.trace.value } }

    /// Adds an event to the trace.
    func trace(_ text: String) { state.withLock { $0.trace.add(text) } }

    /// Draws from the world's own generator.
    func draw<Result: Sendable>(_ body: @Sendable (inout SplitMix64) -> Result) -> Result {
        state.withLock { body(&$0.generator) }
    }

    func enqueue(_ job: UnownedJob) { state.withLock { $0.ready.append(.job(job)) } }

    func enqueue(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.ready.append(.work(work)) }
    }

    /// Runs one piece of work; false when nothing is left.
    func step() -> Bool {
        let (next, woken) = state.withLock {
            state -> (Ready?, [CheckedContinuation<Void, any Error>]) in
            state.stepCount += 1
            let first = state.sleepers.values.map(\.deadline).min()
            if state.ready.isEmpty, let first { state.now = max(state.now, first) }
            state.now += .nanoseconds(Int64.random(in: 1000...20_000, using: &state.generator))
            let woken = state.wake()
            guard !state.ready.isEmpty else { return (nil, woken) }
            let place = Int.random(in: 0..<state.ready.count, using: &state.generator)
            state.trace.add(UInt64(place))
            return (state.ready.remove(at: place), woken)
        }
        for continuation in woken { continuation.resume() }
        switch next {
        case .job(let job): job.runSynchronously(on: MainActor.sharedUnownedExecutor)
        case .work(let work): work()
        case nil: return !woken.isEmpty
        }
        return true
    }

    /// Waits in the world's time.
    func sleep(for duration: Duration) async throws {
        let number = state.withLock { state in
            state.nextSleeper += 1
            return state.nextSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = Task.isCancelled
                state.withLock { state in
                    guard !isCancelled else { return }
                    state.sleepers[number] = Sleeper(
                        deadline: state.now + duration, continuation: continuation)
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Makes a pool whose jobs run in order, at moments that are drawn.
    func makePool() -> BlockingPool {
        let jobs = Mutex<[@Sendable () -> Void]>([])
        return BlockingPool { [self] job in
            jobs.withLock { $0.append(job) }
            enqueue {
                let next = jobs.withLock { $0.removeFirst() }
                next()
            }
        }
    }
}

/// FNV-1a over the events of a run.
struct TraceHash: Sendable {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ number: UInt64) {
        value = (value ^ number) &* 0x0000_0100_0000_01B3
    }

    mutating func add(_ text: String) {
        for byte in text.utf8 { add(UInt64(byte)) }
    }
}

/// The world's time as a clock for waits.
struct SimulatedTimer: Clock {
    struct Instant: InstantProtocol {
        var sinceStart: Duration

        func advanced(by duration: Duration) -> Instant {
            Instant(sinceStart: sinceStart + duration)
        }
        func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }
        static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
    }

    let scheduler: Scheduler
    var now: Instant { Instant(sinceStart: scheduler.now) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await scheduler.sleep(for: max(.zero, now.duration(to: deadline)))
    }
}

/// The world's time as time of day. It may be set forward, as when no client came for days.
final class SimulatedWallClock: WallClock {
    private let scheduler: Scheduler
    private let jumped = Mutex(Duration.zero)

    init(_ scheduler: Scheduler) { self.scheduler = scheduler }

    func now() -> Timestamp {
        Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
            .advanced(by: scheduler.now + jumped.withLock { $0 })
    }

    /// Whether the time was set forward.
    var hasJumped: Bool { jumped.withLock { $0 } > .zero }

    func jump(by duration: Duration) { jumped.withLock { $0 += duration } }
}
