#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// A value behind a lock, for short critical sections without suspension.
///
/// Has the interface of the standard library's `Mutex`, on top of a POSIX mutex. The thread
/// sanitizer knows POSIX mutexes. The slow path of the standard one is in a library built without
/// the sanitizer, which reports every contended use as a race. With this type, the tested code is
/// the shipped code.
///
/// Invariant behind the unchecked conformance: the value is accessed only while the lock is held.
package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Allocated separately: a POSIX mutex must not move.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    /// Creates an unlocked mutex around the value.
    package init(_ initialValue: consuming sending Value) {
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        let status = pthread_mutex_init(lock, nil)
        precondition(status == 0, "the system refused a lock")
        value = .allocate(capacity: 1)
        value.initialize(to: initialValue)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(lock)
        lock.deinitialize(count: 1)
        lock.deallocate()
    }

    /// Runs the closure while the lock is held. Not reentrant: a closure that takes the same lock
    /// again blocks its thread forever.
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let status = pthread_mutex_lock(lock)
        precondition(status == 0, "a lock was used after its end")
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
