internal import Glibc
internal import KedgeLocks
internal import KedgeModel

/// An open descriptor.
///
/// The kernel reuses the number of a closed descriptor at once. So the descriptor is closed only
/// when no call with it is in progress: a late write must not reach another file.
final class POSIXFile: OpenFile {
    private struct State {
        var callCount = 0
        var isClosed = false
    }
    private let descriptor: Int32
    private let path: String
    private let state = Mutex(State())
    private let uncached: UncachedWriter
    /// At most the size of one kernel readahead.
    private static let loadStep = 64 << 10

    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
        uncached = UncachedWriter(descriptor: descriptor, path: path)
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
            // The caller of `close` has returned, so no caller is left to receive an error.
            if isLast { Glibc.close(descriptor) }
        }
        return try body(descriptor)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try call("pwrite") { (descriptor) throws(FileError) in
            try writeAll(bytes, to: descriptor, at: offset)
        }
    }

    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try call("pwrite") { (descriptor) throws(FileError) in
            let done = try uncached.write(bytes, at: offset)
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            try writeAll(rest, to: descriptor, at: offset + Int64(done))
        }
    }

    private func writeAll(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64
    ) throws(FileError) {
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

    func prefetch(_ byteCount: Int64, at offset: Int64) throws(FileError) {
        try call("pread") { (descriptor) throws(FileError) in
            // Starts reading all of it. If that fails, the loop below reads it piece by piece.
            _ = posix_fadvise(
                descriptor, off_t(offset), off_t(byteCount), Int32(POSIX_FADV_WILLNEED))
            // One byte of each piece, and the last byte: they are readable once their pages are
            // loaded.
            let steps = stride(from: offset, to: offset + byteCount, by: Self.loadStep)
            for position in Array(steps) + [offset + byteCount - 1] {
                var byte: UInt8 = 0
                let count = try retrying("pread", path) {
                    pread(descriptor, &byte, 1, off_t(position))
                }
                guard count == 1 else {
                    throw FileError(operation: "pread", path: path, number: ENOENT)
                }
            }
        }
    }

    func dropCached(_ byteCount: Int64, at offset: Int64) {
        // The kernel keeps pages that are only partly in the range (posix_fadvise(2)), so the range
        // is widened.
        let start = offset & ~4095
        let end = (offset + byteCount + 4095) & ~4095
        // A closed file has nothing to drop, and a failure of the advice does not matter.
        try? call("posix_fadvise") { (descriptor) throws(FileError) in
            _ = posix_fadvise(
                descriptor, off_t(start), off_t(end - start), Int32(POSIX_FADV_DONTNEED))
        }
    }

    func duplicateDescriptor() throws(FileError) -> Int32? {
        try call("dup") { (descriptor) throws(FileError) in
            try retrying("dup", path) { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
        }
    }

    func setPermissions(_ permissions: UInt16) throws(FileError) {
        try call("fchmod") { (descriptor) throws(FileError) in
            _ = try retrying("fchmod", path) { fchmod(descriptor, mode_t(permissions)) }
        }
    }

    func setModificationTime(_ nanoseconds: Int64) throws(FileError) {
        let (seconds, rest) = FileTime(nanosecondsSinceEpoch: nanoseconds).parts
        try call("futimens") { (descriptor) throws(FileError) in
            // The time of the last access stays.
            var record = stat()
            _ = try retrying("fstat", path) { fstat(descriptor, &record) }
            let times = [record.st_atim, timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))]
            _ = try retrying("futimens", path) { futimens(descriptor, times) }
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
        // Not repeated after EINTR: on Linux the descriptor is closed either way (close(2)).
        guard isFree, Glibc.close(descriptor) != 0, errno != EINTR else { return }
        throw FileError(operation: "close", path: path, number: errno)
    }
}
