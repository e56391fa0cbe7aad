internal import Glibc

/// Leaves nothing behind when somebody stops the program.
enum Interruption {
    /// From now on SIGINT, SIGTERM and SIGHUP kill the children, remove the directory, and end all.
    ///
    /// Called before any other thread starts, so that all leave these signals to the one here.
    static func cleanUp(_ scratch: Scratch) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let watched = set
        // Nobody joins it: it lives as long as the process.
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
