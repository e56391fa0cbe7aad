internal import Glibc
package import KedgeFiles
internal import KedgeLocks

/// A file system in memory that loses unsynced changes in a power cut.
///
/// It has a page cache: a cut of its ``image`` keeps synced changes and may lose, tear or reorder
/// the rest. A test can count, observe and fail each call. Calls fail as on real disks: a failed
/// write leaves its first half behind, and a failed sync forgets the changes that it should have
/// written.
package final class SimulatedDisk: FileSystem {
    /// A kind of call.
    package enum Call: Sendable, Hashable {
        case open, create, status, makeDirectory, list, rename, link, remove, syncDirectory
        case availableBytes, write, read, syncData, truncate, lock, close

        /// True when a cut before the call and one after it can differ.
        var isChange: Bool {
            switch self {
            case .create, .makeDirectory, .rename, .link, .remove, .syncDirectory, .write,
                .syncData,
                .truncate:
                true
            case .open, .status, .list, .availableBytes, .read, .lock, .close: false
            }
        }
    }

    /// A promise that this disk does not keep, to show that a test notices.
    package enum Mutation: Sendable, CaseIterable {
        case ignoresSyncData
        case ignoresSyncDirectory
    }

    /// Calls that fail.
    package struct Fault: Sendable {
        /// Counts only calls of this kind; nil for any.
        var call: Call?
        /// Number of calls that succeed before.
        var position: Int
        /// The system's error number.
        var number: Int32
        /// True when every later call fails too, as on a full disk.
        var isLasting: Bool

        package init(
            after position: Int, of call: Call? = nil, with number: Int32, isLasting: Bool = false
        ) {
            self.call = call
            self.position = position
            self.number = number
            self.isLasting = isLasting
        }
    }

    /// Called before a call that changes something, while all other calls wait.
    package typealias Observer = @Sendable (DiskImage, Call) -> Void

    struct State {
        var image: DiskImage
        var fault: Fault?
        var hasFailed = false
        var isOff = false
        var callCount = 0
        /// Open descriptors by inode.
        var open: [Int: Int] = [:]
        /// The descriptor that holds the lock of an inode.
        var locks: [Int: ObjectIdentifier] = [:]
        var observer: Observer?
    }

    let state: Mutex<State>
    let mutation: Mutation?
    private let capacity: Int

    /// - Parameter capacity: Size of the disk in bytes.
    package init(
        _ image: DiskImage = DiskImage(), capacity: Int = 1 << 30, mutation: Mutation? = nil
    ) {
        state = Mutex(State(image: image))
        self.capacity = capacity
        self.mutation = mutation
    }

    /// The disk as it is now.
    package var image: DiskImage { state.withLock { $0.image } }
    /// Number of descriptors that were opened and not closed.
    package var openFileCount: Int { state.withLock { $0.open.values.reduce(0, +) } }
    /// Number of calls so far.
    package var callCount: Int { state.withLock { $0.callCount } }
    /// True once a planned call has failed.
    package var hasFailed: Bool { state.withLock { $0.hasFailed } }

    package func observe(_ observer: Observer?) { state.withLock { $0.observer = observer } }

    /// Plans calls that fail, replacing an earlier plan; nil heals the disk.
    package func plan(_ fault: Fault?) {
        state.withLock {
            $0.fault = fault
            $0.hasFailed = false
        }
    }

    /// Cuts the power: no call succeeds any more.
    ///
    /// - Returns: The disk at that moment, unsynced changes and all.
    @discardableResult
    package func powerOff() -> DiskImage {
        state.withLock {
            $0.isOff = true
            return $0.image
        }
    }

    /// Counts a call and runs it on the state. A call that is planned to fail has the effect of a
    /// failed call instead.
    func call<Result>(
        _ call: Call, _ path: String,
        failing spoil: (inout State) -> Void = { _ in },
        _ body: (inout State) throws(FileError) -> Result
    ) throws(FileError) -> Result {
        try state.withLock { state throws(FileError) in
            guard !state.isOff else {
                throw FileError(operation: "\(call)", path: path, number: EIO)
            }
            if call.isChange { state.observer?(state.image, call) }
            state.callCount += 1
            if let number = state.failure(of: call) {
                spoil(&state)
                throw FileError(operation: "planned \(call)", path: path, number: number)
            }
            return try body(&state)
        }
    }

    func freeByteCount(_ state: State) -> Int { max(0, capacity - state.image.usedByteCount) }
}

extension SimulatedDisk.State {
    /// The error number of a call that is planned to fail.
    fileprivate mutating func failure(of call: SimulatedDisk.Call) -> Int32? {
        guard var fault, fault.call == nil || fault.call == call else { return nil }
        fault.position -= 1
        self.fault = fault
        guard fault.position < 0, fault.position == -1 || fault.isLasting else { return nil }
        hasFailed = true
        return fault.number
    }
}

extension SimulatedDisk {
    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        let isCreating = mode == .createNew || mode == .openOrCreate && image.inode(at: path) == nil
        return try call(isCreating ? .create : .open, path) { state throws(FileError) in
            let (directory, name) = try state.image.parent(of: path)
            let found = state.image.inodes[directory]?.names[name]
            switch (mode, found) {
            case (.createNew, .some): throw .simulated("open", path, .exists)
            case (.read, nil), (.readFollowingLinks, nil), (.readWrite, nil):
                throw .simulated("open", path, .notFound)
            default: break
            }
            let inode = found ?? state.image.makeInode(isDirectory: false)
            if found == nil { state.image.setName(name, in: directory, to: inode) }
            state.open[inode, default: 0] += 1
            return SimulatedFile(inode: inode, path: path, disk: self)
        }
    }

    package func status(of path: String) throws(FileError) -> FileStatus? {
        try call(.status, path) { state in
            state.image.inode(at: path).flatMap { state.image.status(of: $0) }
        }
    }

    @discardableResult
    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        try call(.makeDirectory, path) { state throws(FileError) in
            if let found = state.image.inode(at: path) {
                guard state.image.inodes[found]?.isDirectory == true else {
                    throw .simulated("mkdir", path, .exists)
                }
                return false
            }
            let (directory, name) = try state.image.parent(of: path)
            let inode = state.image.makeInode(isDirectory: true)
            state.image.setName(name, in: directory, to: inode)
            return true
        }
    }

    package func list(_ path: String) throws(FileError) -> [String] {
        try call(.list, path) { state throws(FileError) in
            guard let inode = state.image.inode(at: path), let found = state.image.inodes[inode],
                found.isDirectory
            else { throw .simulated("opendir", path, .notFound) }
            return found.names.keys.sorted()
        }
    }

    package func rename(_ source: String, to target: String) throws(FileError) {
        try call(.rename, target) { state throws(FileError) in
            guard let inode = state.image.inode(at: source) else {
                throw .simulated("rename", source, .notFound)
            }
            let (directory, name) = try state.image.parent(of: target)
            let (oldDirectory, oldName) = try state.image.parent(of: source)
            let new = state.image.setName(name, in: directory, to: inode)
            state.image.setName(
                oldName, in: oldDirectory, to: nil, counterpart: new, isAtomic: true)
            state.image.prune(keeping: state.open.keys)
        }
    }

    package func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        // A link and an unlink, as on the real file system: a failure, a kill or a cut may leave
        // both.
        let new = try addName(source, at: target)
        try call(.remove, source) { state throws(FileError) in
            let (directory, name) = try state.image.parent(of: source)
            state.image.setName(name, in: directory, to: nil, counterpart: new)
            state.image.prune(keeping: state.open.keys)
        }
    }

    package func link(_ source: String, to target: String) throws(FileError) {
        _ = try addName(source, at: target)
    }

    /// - Returns: The number of the change.
    private func addName(_ source: String, at target: String) throws(FileError) -> Int {
        try call(.link, target) { state throws(FileError) in
            guard let inode = state.image.inode(at: source) else {
                throw .simulated("link", source, .notFound)
            }
            let (directory, name) = try state.image.parent(of: target)
            guard state.image.inodes[directory]?.names[name] == nil else {
                throw .simulated("link", target, .exists)
            }
            return state.image.setName(name, in: directory, to: inode)
        }
    }

    package func remove(_ path: String) throws(FileError) -> Bool {
        try call(.remove, path) { state throws(FileError) in
            guard state.image.inode(at: path) != nil else { return false }
            let (directory, name) = try state.image.parent(of: path)
            state.image.setName(name, in: directory, to: nil)
            state.image.prune(keeping: state.open.keys)
            return true
        }
    }

    package func syncDirectory(_ path: String) throws(FileError) {
        try call(.syncDirectory, path) { state in
            if let inode = state.image.inode(at: path) { state.image.failSyncNames(of: inode) }
        } _: { state throws(FileError) in
            guard let inode = state.image.inode(at: path) else {
                throw .simulated("open", path, .notFound)
            }
            guard mutation != .ignoresSyncDirectory else { return }
            state.image.syncNames(of: inode)
            state.image.prune(keeping: state.open.keys)
        }
    }

    package func availableBytes(at path: String) throws(FileError) -> Int64 {
        try call(.availableBytes, path) { state in Int64(freeByteCount(state)) }
    }
}

extension DiskImage {
    func status(of inode: Int) -> FileStatus? {
        guard let found = inodes[inode] else { return nil }
        return FileStatus(
            byteCount: Int64(found.content.current.count),
            modifiedNanoseconds: found.modified * 1_000_000, isDirectory: found.isDirectory,
            isRegularFile: !found.isDirectory, device: 1, inode: UInt64(inode))
    }
}

extension FileError {
    /// Error numbers that simulated calls report.
    enum SimulatedCode {
        case notFound, exists, isDirectory, notDirectory, noSpace, closed, locked
    }

    static func simulated(
        _ operation: String, _ path: String, _ code: SimulatedCode
    ) -> FileError {
        let number =
            switch code {
            case .notFound: ENOENT
            case .exists: EEXIST
            case .isDirectory: EISDIR
            case .notDirectory: ENOTDIR
            case .noSpace: ENOSPC
            case .closed: EBADF
            case .locked: EWOULDBLOCK
            }
        return FileError(operation: operation, path: path, number: number)
    }
}
