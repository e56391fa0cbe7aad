internal import Foundation

/// Ends the process at once with the status.
///
/// `exit` would first tear down state of libraries, such as libcrypto's locks, while other threads
/// may still use it. The process would then die of a signal, and the shell would not see the
/// status. Acknowledged data is already on the disk, so no cleanup is lost.
func endProcess(_ status: Int32) -> Never {
    // Flushes lines that a log handler has passed to the C library.
    fflush(nil)
    _exit(status)
}
