#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs work on its own thread, because blocking calls must not occupy the cooperative pool.
package enum DetachedThread {
    /// Starts a thread that runs `work` and ends.
    ///
    /// - Returns: False when the system has no thread; `work` is dropped then.
    package static func start(_ work: @escaping @Sendable () -> Void) -> Bool {
        let task = unsafe Unmanaged.passRetained(ThreadTask(work))
        #if canImport(Darwin)
        var thread: pthread_t?
        let result = unsafe pthread_create(
            &thread, nil, { unsafe ThreadTask.run($0) }, task.toOpaque())
        #else
        var thread = pthread_t()
        let result = unsafe pthread_create(
            &thread, nil, { unsafe $0.flatMap { unsafe ThreadTask.run($0) } }, task.toOpaque())
        #endif
        guard result == 0 else {
            // Only a thread that runs releases its task.
            unsafe task.release()
            return false
        }
        #if canImport(Darwin)
        if let thread = unsafe thread { unsafe pthread_detach(thread) }
        #else
        pthread_detach(thread)
        #endif
        return true
    }
}

private final class ThreadTask: Sendable {
    private let work: @Sendable () -> Void

    init(_ work: @escaping @Sendable () -> Void) {
        self.work = work
    }

    static func run(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        let task = unsafe Unmanaged<ThreadTask>.fromOpaque(context).takeRetainedValue()
        blockSignals()
        task.work()
        return nil
    }

    /// Blocks all signals: the program's own threads handle them. This matters most for SIGPIPE:
    /// OpenSSL writes to sockets without `MSG_NOSIGNAL`, and with `CURLOPT_NOSIGNAL` libcurl leaves
    /// that signal to the program.
    private static func blockSignals() {
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
    }
}
