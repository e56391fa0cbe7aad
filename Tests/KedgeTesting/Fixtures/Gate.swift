internal import Dispatch
internal import KedgeLocks

/// A gate that lets tasks pass once a test has opened it, and stays open.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivalCount = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    package func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                state.arrivalCount += 1
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Waits like ``wait()``, but no longer than until the calling task is canceled.
    package func waitOrCancellation() async {
        state.withLock { $0.arrivalCount += 1 }
        while !state.withLock({ $0.isOpen }), !Task.isCancelled {
            // Canceled: the loop ends.
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Number of waits that have begun.
    package var arrivalCount: Int { state.withLock { $0.arrivalCount } }

    /// Returns once the first wait has begun.
    package func waitForArrival() async {
        while arrivalCount == 0 { try? await Task.sleep(for: .milliseconds(5)) }
    }
}

/// A gate for threads of a pool, because a call to the disk has no task.
package final class ThreadGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    /// Opened once a thread waits here.
    package let hasArrived = Gate()

    package init() {}

    package func open() { semaphore.signal() }

    /// Waits until the gate opens, or until a timeout that ends a failing test.
    package func wait() {
        hasArrived.open()
        _ = semaphore.wait(timeout: .now() + 30)
        // Lets later threads pass.
        semaphore.signal()
    }
}

/// Returns once the calling task is cancelled.
package func untilCancelled() async {
    let isCancelled = Gate()
    await withTaskCancellationHandler {
        await isCancelled.wait()
    } onCancel: {
        isCancelled.open()
    }
}
