internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// Makes directories and syncs them, and remembers what the disk is known to hold. Every call
/// blocks.
final class DurableNames: Sendable {
    /// A directory of which syncs run one at a time: the kernel tells of a failure once, and a call
    /// beside the one that is told would succeed without anything being written.
    private final class Directory: Sendable {
        /// True when the last sync by this process succeeded. Before the first one nobody knows: it may
        /// have failed under an earlier process, and a restart does not bring back what the kernel
        /// then took for clean.
        let isTrusted = Mutex(false)
    }

    private struct State {
        /// Directories whose own names this process has synced.
        var made: Set<String> = []
        var directories: [String: Directory] = [:]
    }

    private let state = Mutex(State())
    private let fileSystem: any FileSystem

    init(_ fileSystem: any FileSystem) { self.fileSystem = fileSystem }

    /// Makes the directory and all above it that are missing, up to `root`, and syncs their names.
    ///
    /// A directory that is there already may have been made by a process that died before its sync,
    /// so its name too is synced once in the life of this process.
    func makeDirectory(_ path: String, upTo root: String) throws(FileError) {
        guard path != root, !state.withLock({ $0.made.contains(path) }) else { return }
        let parent = Self.parent(of: path)
        try makeDirectory(parent, upTo: root)
        try fileSystem.makeDirectory(path)
        try sync(parent)
        state.withLock { _ = $0.made.insert(path) }
    }

    /// Makes the directory with all that are missing above it.
    func makeRoot(_ path: String) throws(FileError) {
        let parent = Self.parent(of: path)
        if try fileSystem.status(of: path) == nil {
            try makeRoot(parent)
            try fileSystem.makeDirectory(path)
            // Not through `sync`: the directory has just been changed, and is not ours.
            try fileSystem.syncDirectory(parent)
        } else if try fileSystem.list(path).isEmpty {
            // Perhaps made by a process that stopped before its name was durable. The scratch name is
            // nobody's: the directory around it is not ours.
            let scratch = "\(path).\(SessionID.random())"
            do throws(FileError) {
                try fileSystem.syncDirectoryAnew(parent, scratch: scratch)
            } catch  where [.permission, .readOnly].contains(error.code) {
                // Whoever may make no names there has not made this one.
                return
            }
        }
    }

    /// Makes the names in the directory durable, also after a sync that failed, here or under an earlier
    /// process.
    func sync(_ directory: String) throws(FileError) {
        let known = state.withLock { state in
            let known = state.directories[directory] ?? Directory()
            state.directories[directory] = known
            return known
        }
        try known.isTrusted.withLock { isTrusted throws(FileError) in
            let wasTrusted = isTrusted
            isTrusted = false
            if wasTrusted {
                try fileSystem.syncDirectory(directory)
            } else {
                let scratch = "\(directory)/\(DataDirectory.scratchName)"
                try fileSystem.syncDirectoryAnew(directory, scratch: scratch)
            }
            isTrusted = true
        }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
