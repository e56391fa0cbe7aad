internal import KedgeFiles

/// The state of a simulated disk at one moment: what programs see, and what is on the platter.
///
/// A value: a test keeps the image of each moment that it returns to, at the cost of the changes
/// since. Unsynced changes are remembered one by one, so that ``surviving(_:)`` can lose any of
/// them.
package struct DiskImage: Sendable {
    /// A name that was set or removed and not yet synced.
    struct NameChange: Sendable {
        var directory: Int
        var name: String
        /// The inode of the name; nil when it was removed.
        var inode: Int?
        /// For the name that a rename removes: the number of the change that made the new one. A
        /// journal never shows the first without the second.
        var counterpart: Int?
        /// Whether the counterpart never shows without this change either.
        var isAtomic = false
        let number: Int
    }

    static let root = 0

    var inodes: [Int: Inode] = [root: Inode(isDirectory: true)]
    var nameChanges: [NameChange] = []
    /// Directories without a change since a failed sync: another sync would do nothing.
    var forgottenDirectories: Set<Int> = []
    var nextInode = 1
    var nextChange = 0
    /// Counts the changes of content; serves as the time of the last one, in milliseconds.
    var tick: Int64 = 0

    /// An empty disk.
    package init() {}

    /// Total size of all files that a name leads to, in bytes.
    package var usedByteCount: Int {
        inodes.values.reduce(0) { $0 + $1.content.current.count }
    }

    /// The content of a file as programs see it; nil when there is none.
    package func content(at path: String) -> [UInt8]? {
        guard let inode = inode(at: path), !inodes[inode, default: Inode()].isDirectory
        else { return nil }
        return inodes[inode]?.content.current
    }

    /// Every file's path, sorted.
    package var paths: [String] { paths(below: Self.root, at: "").sorted() }

    private func paths(below directory: Int, at path: String) -> [String] {
        (inodes[directory]?.names ?? [:]).flatMap { name, inode in
            inodes[inode]?.isDirectory == true
                ? paths(below: inode, at: "\(path)/\(name)") : ["\(path)/\(name)"]
        }
    }
}

extension DiskImage {
    /// A file or a directory.
    struct Inode: Sendable {
        var isDirectory = false
        var content = FileContent()
        /// Names that programs see in a directory.
        var names: [String: Int] = [:]
        /// Names that are on the platter for certain.
        var durableNames: [String: Int] = [:]
        var modified: Int64 = 0
    }

    /// Directory and last name of an absolute path.
    func parent(of path: String) throws(FileError) -> (directory: Int, name: String) {
        let parts = path.split(separator: "/").map(String.init)
        guard let name = parts.last else { throw FileError.simulated("lookup", path, .isDirectory) }
        var directory = Self.root
        for part in parts.dropLast() {
            guard let next = inodes[directory]?.names[part] else {
                throw FileError.simulated("lookup", path, .notFound)
            }
            guard inodes[next]?.isDirectory == true else {
                throw FileError.simulated("lookup", path, .notDirectory)
            }
            directory = next
        }
        return (directory, name)
    }

    /// The inode of a path; nil when there is none.
    func inode(at path: String) -> Int? {
        if path.allSatisfy({ $0 == "/" }) { return Self.root }
        // Every directory has this name for itself, and nothing else does.
        if path.hasSuffix("/.") {
            let inode = inode(at: String(path.dropLast(2)))
            return inode.flatMap { inodes[$0]?.isDirectory == true ? $0 : nil }
        }
        // Without a parent directory there is no inode.
        guard let (directory, name) = try? parent(of: path) else { return nil }
        return inodes[directory]?.names[name]
    }

    mutating func makeInode(isDirectory: Bool) -> Int {
        defer { nextInode += 1 }
        inodes[nextInode] = Inode(isDirectory: isDirectory, modified: tick)
        return nextInode
    }

    /// Sets or removes a name; durable after ``syncNames(of:)``.
    ///
    /// - Returns: The number of the change.
    @discardableResult
    mutating func setName(
        _ name: String, in directory: Int, to inode: Int?, counterpart: Int? = nil,
        isAtomic: Bool = false
    ) -> Int {
        inodes[directory]?.names[name] = inode
        forgottenDirectories.remove(directory)
        defer { nextChange += 1 }
        nameChanges.append(
            NameChange(
                directory: directory, name: name, inode: inode, counterpart: counterpart,
                isAtomic: isAtomic, number: nextChange))
        return nextChange
    }

    /// The block of a directory was not written, and the kernel takes it for clean (fsync(2)).
    mutating func failSyncNames(of directory: Int) { forgottenDirectories.insert(directory) }

    mutating func syncNames(of directory: Int) {
        guard !forgottenDirectories.contains(directory) else { return }
        for change in nameChanges where change.directory == directory {
            inodes[directory]?.durableNames[change.name] = change.inode
            guard let counterpart = change.counterpart,
                let other = nameChanges.first(where: { $0.number == counterpart }),
                other.directory != directory
            else { continue }
            // The journal writes both names of a rename, or at least the new one.
            inodes[other.directory]?.durableNames[other.name] = other.inode
            nameChanges.removeAll { $0.number == counterpart }
        }
        nameChanges.removeAll { $0.directory == directory }
    }

    /// Forgets files to which no name, name change or open descriptor leads.
    mutating func prune(keeping open: some Sequence<Int>) {
        var wanted: Set<Int> = [Self.root]
        wanted.formUnion(open)
        wanted.formUnion(nameChanges.compactMap(\.inode))
        for inode in inodes.values {
            wanted.formUnion(inode.names.values)
            wanted.formUnion(inode.durableNames.values)
        }
        guard wanted.count < inodes.count else { return }
        inodes = inodes.filter { wanted.contains($0.key) }
    }
}
