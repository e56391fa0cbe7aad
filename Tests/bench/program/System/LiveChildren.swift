internal import Glibc
internal import KedgeLocks

/// The processes that were started and have not been seen to end.
enum LiveChildren {
    private struct Listing {
        var ids: Set<pid_t> = []
        var isClosed = false
    }

    private static let listing = Mutex(Listing())

    /// Starts one and lists it before anybody can ask to kill all.
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

    /// Kills what still runs, waits until it has, and lets nothing be started after that.
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
