internal import Glibc
internal import KedgeLocks

/// A thread of the operating system. The clients here block in system calls, like those of users.
struct Thread: ~Copyable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    private let handle: pthread_t

    /// Starts the closure. ``join()`` must be called to wait for its end, or else ``detach()``.
    init(_ run: @escaping @Sendable () -> Void) {
        let body = Unmanaged.passRetained(Body(run))
        var handle = pthread_t()
        let status = pthread_create(
            &handle, nil,
            { raw in
                guard let raw else { return nil }
                Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run()
                return nil
            }, body.toOpaque())
        precondition(status == 0, "the system refused a thread")
        self.handle = handle
    }

    consuming func join() {
        pthread_join(handle, nil)
    }

    /// Releases the thread without waiting for it.
    consuming func detach() {
        pthread_detach(handle)
    }
}

/// Runs the closure once for each number below `count`, each on its own thread, and waits for all.
///
/// - Throws: The first failure by number, after all have ended.
func concurrently<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value
) throws -> [Value] {
    let slots = SharedValue([Result<Value, any Error>?](repeating: nil, count: count))
    let run: @Sendable (Int) -> Void = { index in
        let result = Result { try body(index) }
        slots.change { $0[index] = result }
    }
    join(count, run)
    return try slots.current.map { result in
        guard let result else { preconditionFailure("a thread ended without a result") }
        return try result.get()
    }
}

/// Threads are not copyable and cannot be in an array, so the call stack keeps them.
private func join(_ count: Int, _ run: @escaping @Sendable (Int) -> Void) {
    guard count > 0 else { return }
    let thread = Thread { run(count - 1) }
    join(count - 1, run)
    thread.join()
}

/// A value that threads share.
final class SharedValue<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) {
        self.value = Mutex(value)
    }

    var current: Value { value.withLock { $0 } }

    func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

/// Numbers that threads take in turn until none is left.
final class Turns: Sendable {
    private let next: SharedValue<Int>
    private let end: Int

    init(_ count: Int) {
        next = SharedValue(0)
        end = count
    }

    func take() -> Int? {
        next.change { next in
            guard next < end else { return nil }
            defer { next += 1 }
            return next
        }
    }
}
