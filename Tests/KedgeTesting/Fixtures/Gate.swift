import Dispatch
import KedgeLocks

/// What tasks wait at until a test opens it; it stays open.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// What a thread of the pool waits at, because a call to the disk has no task.
final class ThreadGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    /// Opened once a thread waits here.
    let hasArrived = Gate()

    func open() { semaphore.signal() }

    /// Passes by itself after a while, so that a failing test ends.
    func wait() {
        hasArrived.open()
        _ = semaphore.wait(timeout: .now() + 30)
        // Whoever comes later passes.
        semaphore.signal()
    }
}

/// Returns once the calling task is cancelled.
func untilCancelled() async {
    let isCancelled = Gate()
    await withTaskCancellationHandler {
        await isCancelled.wait()
    } onCancel: {
        isCancelled.open()
    }
}

/// A value that several tasks and threads change.
final class Shared<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>

    init(_ value: Value) { storage = Mutex(value) }

    var value: Value { storage.withLock { $0 } }

    func update<Result: Sendable>(_ change: @Sendable (inout Value) -> Result) -> Result {
        storage.withLock { change(&$0) }
    }
}

extension Shared<Int> {
    /// Adds one and returns the sum.
    func increment() -> Int {
        update {
            $0 += 1
            return $0
        }
    }
}
