package import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// Creates and syncs directories, and remembers which of them are known to be durable. Every call
/// blocks.
package final class DurableNames: Sendable {
    /// The sync state of a directory. Syncs run one at a time: the kernel reports a failure once,
    /// so a concurrent call would succeed although nothing was written.
    private final class Directory: Sendable {
        enum LastSync {
            /// There was none by this process. One may have failed under an earlier process, and
            /// the kernel then considers the directory clean, also after a restart of the process.
            case unknown
            case succeeded
            /// The kernel considers the directory clean, although changes are lost: also those of
            /// callers that have not called for their sync yet.
            case failed
        }

        struct Syncs {
            var last = LastSync.unknown
            /// Number of the last sync that succeeded; 0 before.
            var lastSuccess = 0
        }

        /// Held during a sync.
        let syncs = Mutex(Syncs())
        /// Number of syncs that have begun.
        let begun = Mutex(0)
    }

    private struct State {
        /// Directories whose own names this process has synced.
        var made: Set<String> = []
        var directories: [String: Directory] = [:]
    }

    private let state = Mutex(State())
    private let fileSystem: any FileSystem

    package init(_ fileSystem: any FileSystem) { self.fileSystem = fileSystem }

    /// Creates the directory and its missing parents up to `root`, and syncs their names.
    ///
    /// An earlier process may have created a directory and died before the sync. So the name of an
    /// existing one is also synced, once per process.
    func makeDirectory(_ path: String, upTo root: String) throws(FileError) {
        guard path != root, !state.withLock({ $0.made.contains(path) }) else { return }
        let parent = Self.parent(of: path)
        try makeDirectory(parent, upTo: root)
        let isNew = try fileSystem.makeDirectory(path)
        try sync(parent, hasChanged: isNew)
        state.withLock { _ = $0.made.insert(path) }
    }

    /// Creates the directory and all missing parents.
    func makeRoot(_ path: String) throws(FileError) {
        let parent = Self.parent(of: path)
        if try fileSystem.status(of: path) == nil {
            try makeRoot(parent)
            try fileSystem.makeDirectory(path)
            // Not through `sync`: the directory was just changed, and it is not part of the store.
            try fileSystem.syncDirectory(parent)
        } else if try fileSystem.list(path).isEmpty {
            // An earlier process may have created it and stopped before its name was durable. The
            // scratch name is unique, because the parent directory is not part of the store.
            let scratch = "\(path).\(SessionID.random())"
            do throws(FileError) {
                try fileSystem.syncDirectoryAnew(parent, scratch: scratch)
            } catch  where [.permission, .readOnly].contains(error.code) {
                // This process may not create names there, so it did not create this one.
                return
            }
        }
    }

    /// Makes the names in the directory durable, also after a failed sync of this or an earlier
    /// process. Concurrent calls share a sync that began after all their changes.
    ///
    /// - Parameter hasChanged: Whether the caller has added or removed a name there since the
    ///   process began, so that the kernel has something to write at the first sync. Without a
    ///   change, and always after a failed sync, the directory is changed first.
    package func sync(_ directory: String, hasChanged: Bool = false) throws(FileError) {
        let known = state.withLock { state in
            let known = state.directories[directory] ?? Directory()
            state.directories[directory] = known
            return known
        }
        let begunBefore = known.begun.withLock { $0 }
        try known.syncs.withLock { progress throws(FileError) in
            // A sync that began after this call includes the caller's change.
            guard progress.lastSuccess <= begunBefore else { return }
            let number = known.begun.withLock { begun in
                begun += 1
                return begun
            }
            let hasSomethingToWrite =
                switch progress.last {
                case .unknown: hasChanged
                case .succeeded: true
                // The failed sync may have taken the caller's change for written.
                case .failed: false
                }
            progress.last = .failed
            if hasSomethingToWrite {
                try fileSystem.syncDirectory(directory)
            } else {
                let scratch = "\(directory)/\(DataDirectory.scratchName)"
                try fileSystem.syncDirectoryAnew(directory, scratch: scratch)
            }
            progress.last = .succeeded
            progress.lastSuccess = number
        }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
