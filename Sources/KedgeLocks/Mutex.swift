#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// A value behind a lock, for short critical sections without suspension.
///
/// It has the interface of the standard library's `Mutex` and stands on a POSIX mutex instead. The
/// thread sanitizer knows those; the slow path of the standard one lies in a library that is built
/// without the sanitizer, so that every use under contention is reported as a race. What the
/// sanitizer checks is thereby what ships.
///
/// Invariant behind the unchecked conformance: the value is reached only while the lock is held.
package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // In memory of their own: a POSIX mutex must not move.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    /// A lock that nobody holds, around the value.
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

    /// Runs the closure while the lock is held; waits for the lock first. Not reentrant: a closure
    /// that takes the same lock again stops the thread for ever.
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let status = pthread_mutex_lock(lock)
        precondition(status == 0, "a lock was used after its end")
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
