internal import Glibc
internal import KedgeFiles
internal import KedgeLocks

/// A descriptor of a simulated disk.
final class SimulatedFile: OpenFile {
    private let inode: Int
    private let path: String
    private let disk: SimulatedDisk
    private let isClosed = Mutex(false)

    init(inode: Int, path: String, disk: SimulatedDisk) {
        self.inode = inode
        self.path = path
        self.disk = disk
    }

    deinit { release() }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try checkOpen("pwrite")
        let written = Array(bytes)
        // A disk that fails or fills up part-way has kept the first bytes.
        let firstHalf = Array(written.prefix(written.count / 2))
        try disk.call(.write, path) { state in
            self.edit(.write(offset: Int(offset), bytes: firstHalf), in: &state)
        } _: { state throws(FileError) in
            let size = state.image.inodes[inode]?.content.current.count ?? 0
            let growth = Int(offset) + written.count - size
            guard growth <= disk.freeByteCount(state) else {
                edit(.write(offset: Int(offset), bytes: firstHalf), in: &state)
                throw .simulated("pwrite", path, .noSpace)
            }
            edit(.write(offset: Int(offset), bytes: written), in: &state)
        }
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try checkOpen("pread")
        return try disk.call(.read, path) { state in
            let content = state.image.inodes[inode]?.content.current ?? []
            let rest = content.dropFirst(Int(offset)).prefix(buffer.count)
            buffer.copyBytes(from: rest)
            return rest.count
        }
    }

    func syncData() throws(FileError) {
        try checkOpen("fdatasync")
        try disk.call(.syncData, path) { state in
            state.image.inodes[self.inode]?.content.failSync()
        } _: { state in
            guard disk.mutation != .ignoresSyncData else { return }
            state.image.inodes[inode]?.content.sync()
        }
    }

    func truncate(to byteCount: Int64) throws(FileError) {
        try checkOpen("ftruncate")
        try disk.call(.truncate, path) { state in
            edit(.truncate(byteCount: Int(byteCount)), in: &state)
        }
    }

    func status() throws(FileError) -> FileStatus {
        try checkOpen("fstat")
        return try disk.call(.status, path) { state throws(FileError) in
            guard let status = state.image.status(of: inode) else {
                throw .simulated("fstat", path, .closed)
            }
            return status
        }
    }

    func lockExclusively() throws(FileError) {
        try checkOpen("flock")
        try disk.call(.lock, path) { state throws(FileError) in
            let holder = state.locks[inode]
            guard holder == nil || holder == ObjectIdentifier(self) else {
                throw .simulated("flock", path, .locked)
            }
            state.locks[inode] = ObjectIdentifier(self)
        }
    }

    func close() throws(FileError) {
        // The descriptor is closed, whatever close reports (close(2)).
        release()
        try disk.call(.close, path) { _ in }
    }

    private func checkOpen(_ operation: String) throws(FileError) {
        if isClosed.withLock({ $0 }) { throw .simulated(operation, path, .closed) }
    }

    private func edit(_ edit: FileContent.Edit, in state: inout SimulatedDisk.State) {
        state.image.tick += 1
        state.image.inodes[inode]?.content.edit(edit)
        state.image.inodes[inode]?.modified = state.image.tick
    }

    private func release() {
        let wasOpen = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
        guard wasOpen else { return }
        disk.state.withLock { state in
            if state.locks[inode] == ObjectIdentifier(self) { state.locks[inode] = nil }
            guard let count = state.open[inode] else { return }
            state.open[inode] = count > 1 ? count - 1 : nil
        }
    }
}
