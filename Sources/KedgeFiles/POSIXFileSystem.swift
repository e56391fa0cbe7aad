internal import Glibc
internal import KedgeLocks

/// The real file system.
package struct POSIXFileSystem: FileSystem {
    package init() {}

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        let flags: Int32 =
            switch mode {
            case .read: O_RDONLY | O_NOFOLLOW
            case .readFollowingLinks: O_RDONLY
            case .readWrite: O_RDWR | O_NOFOLLOW
            case .createNew: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
            case .openOrCreate: O_RDWR | O_CREAT | O_NOFOLLOW
            }
        // Opening a pipe that nobody writes to would wait for ever; for regular files it says nothing.
        let always = O_CLOEXEC | O_NONBLOCK
        let descriptor = try retrying("open", path) { Glibc.open(path, flags | always, 0o600) }
        return POSIXFile(descriptor: descriptor, path: path)
    }

    package func status(of path: String) throws(FileError) -> FileStatus? {
        var record = stat()
        guard lstat(path, &record) != 0 else { return FileStatus(record) }
        // ENOTDIR: a parent is a file, so there is nothing at the path either.
        guard errno != ENOENT, errno != ENOTDIR else { return nil }
        throw FileError(operation: "lstat", path: path, number: errno)
    }

    package func makeDirectory(_ path: String) throws(FileError) {
        guard mkdir(path, 0o700) != 0 else { return }
        guard errno == EEXIST, try status(of: path)?.isDirectory == true else {
            throw FileError(operation: "mkdir", path: path, number: errno)
        }
    }

    package func list(_ path: String) throws(FileError) -> [String] {
        guard let directory = opendir(path) else {
            throw FileError(operation: "opendir", path: path, number: errno)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                guard errno == 0 else {
                    throw FileError(operation: "readdir", path: path, number: errno)
                }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    package func rename(_ source: String, to target: String) throws(FileError) {
        _ = try retrying("rename", target) { Glibc.rename(source, target) }
    }

    package func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        // A hard link never replaces. renameat2(2) with RENAME_NOREPLACE would do it in one call, but
        // is hidden from Swift behind a feature macro of the C library.
        do throws(FileError) {
            _ = try retrying("link", target) { link(source, target) }
            _ = try remove(source)
        } catch  where [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(error.number) {
            // File systems without hard links. Somebody else's file could appear between the two
            // calls; without the kernel's help there is no closing that gap.
            guard try status(of: target) == nil else {
                throw FileError(operation: "link", path: target, number: EEXIST)
            }
            try rename(source, to: target)
        }
    }

    package func remove(_ path: String) throws(FileError) -> Bool {
        guard unlink(path) != 0 else { return true }
        guard errno == ENOENT else {
            throw FileError(operation: "unlink", path: path, number: errno)
        }
        return false
    }

    package func syncDirectory(_ path: String) throws(FileError) {
        let descriptor = try retrying("open", path) {
            Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw FileError(operation: "fsync", path: path, number: errno)
        }
    }

    package func availableBytes(at path: String) throws(FileError) -> Int64 {
        var record = statvfs()
        _ = try retrying("statvfs", path) { statvfs(path, &record) }
        let (bytes, overflow) = Int64(clamping: record.f_bavail)
            .multipliedReportingOverflow(by: Int64(clamping: record.f_frsize))
        return overflow ? Int64.max : bytes
    }
}

/// An open descriptor.
///
/// The kernel gives the number of a closed descriptor to the next file at once, so it is closed only
/// when no call is under way with it: a late write must not reach somebody else's file.
private final class POSIXFile: OpenFile {
    private struct State {
        var callCount = 0
        var isClosed = false
    }
    private let descriptor: Int32
    private let path: String
    private let state = Mutex(State())

    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        if !state.withLock({ $0.isClosed }) { Glibc.close(descriptor) }
    }

    private func call<Result>(
        _ operation: String, _ body: (Int32) throws(FileError) -> Result
    ) throws(FileError) -> Result {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.callCount += 1 }
            return !state.isClosed
        }
        guard isOpen else { throw FileError(operation: operation, path: path, number: EBADF) }
        defer {
            let isLast = state.withLock { state in
                state.callCount -= 1
                return state.isClosed && state.callCount == 0
            }
            // The caller of `close` has returned; nobody is left to hear of an error here.
            if isLast { Glibc.close(descriptor) }
        }
        return try body(descriptor)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try call("pwrite") { (descriptor) throws(FileError) in
            var done = 0
            while done < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
                let count = try retrying("pwrite", path) {
                    pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
                }
                guard count > 0 else {
                    throw FileError(operation: "pwrite", path: path, number: ENOSPC)
                }
                done += count
            }
        }
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try call("pread") { (descriptor) throws(FileError) in
            var done = 0
            while done < buffer.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
                let count = try retrying("pread", path) {
                    pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
                }
                if count == 0 { break }
                done += count
            }
            return done
        }
    }

    func syncData() throws(FileError) {
        try call("fdatasync") { (descriptor) throws(FileError) in
            guard fdatasync(descriptor) == 0 else {
                throw FileError(operation: "fdatasync", path: path, number: errno)
            }
        }
    }

    func truncate(to byteCount: Int64) throws(FileError) {
        try call("ftruncate") { (descriptor) throws(FileError) in
            _ = try retrying("ftruncate", path) { ftruncate(descriptor, off_t(byteCount)) }
        }
    }

    func status() throws(FileError) -> FileStatus {
        try call("fstat") { (descriptor) throws(FileError) in
            var record = stat()
            _ = try retrying("fstat", path) { fstat(descriptor, &record) }
            return FileStatus(record)
        }
    }

    func lockExclusively() throws(FileError) {
        try call("flock") { (descriptor) throws(FileError) in
            _ = try retrying("flock", path) { flock(descriptor, LOCK_EX | LOCK_NB) }
        }
    }

    func close() throws(FileError) {
        let isFree = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed && state.callCount == 0
        }
        // Never again after EINTR: on Linux the descriptor is gone either way (close(2)).
        guard isFree, Glibc.close(descriptor) != 0, errno != EINTR else { return }
        throw FileError(operation: "close", path: path, number: errno)
    }
}

extension FileStatus {
    fileprivate init(_ record: stat) {
        self.init(
            byteCount: Int64(record.st_size),
            modifiedNanoseconds: Int64(record.st_mtim.tv_sec) * 1_000_000_000
                + Int64(record.st_mtim.tv_nsec),
            isDirectory: record.st_mode & S_IFMT == S_IFDIR,
            isRegularFile: record.st_mode & S_IFMT == S_IFREG,
            device: UInt64(record.st_dev), inode: UInt64(record.st_ino),
            // Always in units of 512 bytes, whatever the block size of the file system (stat(2)).
            allocatedByteCount: Int64(record.st_blocks) * 512)
    }
}

/// Calls again after an interruption by a signal; throws what else went wrong.
private func retrying<Result: SignedInteger>(
    _ operation: String, _ path: String, _ call: () -> Result
) throws(FileError) -> Result {
    while true {
        let result = call()
        if result >= 0 { return result }
        let number = errno
        guard number == EINTR else {
            throw FileError(operation: operation, path: path, number: number)
        }
    }
}
