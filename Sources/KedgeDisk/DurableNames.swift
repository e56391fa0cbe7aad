internal import KedgeFiles
internal import KedgeLocks

/// Makes directories and syncs them, and remembers what the disk is known to hold. Every call
/// blocks.
final class DurableNames: Sendable {
    private struct State {
        /// Directories whose own names this process has synced.
        var made: Set<String> = []
        /// Directories whose last sync failed.
        var suspect: Set<String> = []
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
        guard try fileSystem.status(of: path) == nil else { return }
        let parent = Self.parent(of: path)
        try makeRoot(parent)
        try fileSystem.makeDirectory(path)
        try sync(parent)
    }

    /// Makes the names in the directory durable, also after a sync that failed.
    func sync(_ directory: String) throws(FileError) {
        let isSuspect = state.withLock { $0.suspect.contains(directory) }
        do {
            if isSuspect {
                try fileSystem.syncDirectoryAnew(directory, scratch: directory + "/resync")
            } else {
                try fileSystem.syncDirectory(directory)
            }
        } catch {
            state.withLock { _ = $0.suspect.insert(directory) }
            throw error
        }
        if isSuspect { state.withLock { _ = $0.suspect.remove(directory) } }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
