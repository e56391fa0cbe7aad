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
        // Opening a FIFO without a writer would block forever; O_NONBLOCK has no effect on regular
        // files.
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

    @discardableResult
    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        guard mkdir(path, 0o700) != 0 else { return true }
        let number = errno
        guard number == EEXIST, try status(of: path)?.isDirectory == true else {
            throw FileError(operation: "mkdir", path: path, number: number)
        }
        return false
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
        // A hard link never replaces a file. renameat2(2) with RENAME_NOREPLACE would need one
        // call, but a feature macro of the C library hides it from Swift.
        do throws(FileError) {
            try link(source, to: target)
            _ = try remove(source)
        } catch  where error.isUnsupportedLink {
            // For file systems without hard links. Another process could create the target between
            // the two calls; only the kernel could close that gap.
            guard try status(of: target) == nil else {
                throw FileError(operation: "link", path: target, number: EEXIST)
            }
            try rename(source, to: target)
        }
    }

    package func link(_ source: String, to target: String) throws(FileError) {
        _ = try retrying("link", target) { Glibc.link(source, target) }
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

    package func networkFileSystem(at path: String) throws(FileError) -> String? {
        guard let device = try status(of: path)?.device else { return nil }
        return NetworkFileSystem.name(ofDevice: device, in: try mounts())
    }

    /// The kernel's mount table.
    private func mounts() throws(FileError) -> String {
        let file = try open("/proc/self/mountinfo", .read)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { buffer.deallocate() }
        var text: [UInt8] = []
        while true {
            let count = try file.read(into: buffer, at: Int64(text.count))
            guard count > 0 else { break }
            text += buffer.prefix(count)
        }
        try file.close()
        return String(decoding: text, as: UTF8.self)
    }
}

extension FileStatus {
    init(_ record: stat) {
        self.init(
            byteCount: Int64(record.st_size),
            modifiedNanoseconds: Self.nanoseconds(record.st_mtim),
            changedNanoseconds: Self.nanoseconds(record.st_ctim),
            isDirectory: record.st_mode & S_IFMT == S_IFDIR,
            isRegularFile: record.st_mode & S_IFMT == S_IFREG,
            device: UInt64(record.st_dev), inode: UInt64(record.st_ino),
            // Always in units of 512 bytes, whatever the file system's block size (stat(2)).
            allocatedByteCount: Int64(record.st_blocks) * 512,
            permissions: UInt16(truncatingIfNeeded: record.st_mode & 0o7777),
            ownerID: UInt32(record.st_uid), groupID: UInt32(record.st_gid))
    }

    /// Converts a time; wraps instead of trapping, because some file systems report times out of
    /// range.
    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// Repeats the call after an interruption by a signal; throws any other error.
func retrying<Result: SignedInteger>(
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
