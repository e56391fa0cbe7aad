internal import Glibc
internal import KedgeLocks

/// Processes that were started and not yet reaped.
enum LiveChildren {
    private struct Listing {
        var ids: Set<pid_t> = []
        var isClosed = false
    }

    private static let listing = Mutex(Listing())

    /// Starts a process and lists it in one step, so that ``killAll()`` cannot miss it.
    static func start(_ spawn: () throws -> pid_t) throws -> pid_t {
        try listing.withLock { listing in
            guard !listing.isClosed else { throw BenchFailure("the program is ending") }
            let id = try spawn()
            listing.ids.insert(id)
            return id
        }
    }

    static func forget(_ id: pid_t) {
        listing.withLock { listing in _ = listing.ids.remove(id) }
    }

    /// Kills the running processes, waits until they have ended, and prevents later starts.
    static func killAll() {
        listing.withLock { listing in
            listing.isClosed = true
            for id in listing.ids {
                kill(id, SIGKILL)
                // The thread that waits for this child may take its status first; either is fine.
                waitpid(id, nil, 0)
            }
            listing.ids = []
        }
    }
}
