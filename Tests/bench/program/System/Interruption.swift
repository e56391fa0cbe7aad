internal import Glibc

/// Cleans up when a signal stops the program.
enum Interruption {
    /// Makes SIGINT, SIGTERM and SIGHUP kill the children, remove the directory and end the
    /// program.
    ///
    /// Called before any other thread starts, so that all threads leave these signals to this one.
    static func cleanUp(_ scratch: Scratch) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let watched = set
        // No thread joins this one: it lives as long as the process.
        let thread = Thread {
            var set = watched
            var signal: Int32 = 0
            sigwait(&set, &signal)
            LiveChildren.killAll()
            scratch.remove()
            _exit(128 + signal)
        }
        thread.detach()
    }
}
