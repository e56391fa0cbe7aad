internal import Foundation

/// Ends the process at once with the status.
///
/// `exit` would first take apart what libraries set up, libcrypto's locks among it, while other threads
/// may still use that: then the process dies of a signal, and a shell sees that instead of the
/// status. Nothing of ours waits for such a moment: what is acknowledged is on the disk already.
func endProcess(_ status: Int32) -> Never {
    // Lines that a log handler has given to the C library.
    fflush(nil)
    _exit(status)
}
