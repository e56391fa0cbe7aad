internal import Glibc
internal import KedgeLocks

/// Writes to an open file past the page cache, as far as the file system and the alignment allow.
///
/// The kernel accepts such writes only in whole blocks, from aligned memory and through a separate
/// descriptor (`O_DIRECT`, open(2)). The first write opens that descriptor; `deinit` closes it.
package final class UncachedWriter: Sendable {
    private struct State {
        /// Nil before the first write, negative when opening it failed.
        var descriptor: Int32?
        /// Whether the file system has refused such a write.
        var isRefused = false
    }

    /// Required alignment of addresses. Devices ask for 512 or 4096 bytes.
    static let alignment = 4096
    /// Granule of offsets and lengths. Whole pages, because a cached write beside an uncached one
    /// in the same page could later overwrite it.
    package static let blockByteCount = max(alignment, sysconf(Int32(_SC_PAGESIZE)))

    private let original: Int32
    private let path: String
    private let state = Mutex(State())

    /// - Parameter descriptor: The file's descriptor; must stay open until the last call has ended.
    init(descriptor: Int32, path: String) {
        original = descriptor
        self.path = path
    }

    deinit {
        if let descriptor = state.withLock({ $0.descriptor }), descriptor >= 0 { close(descriptor) }
    }

    /// Writes as many of the first bytes as possible past the cache; blocks.
    ///
    /// - Returns: How many bytes were written. The caller writes the rest through the cache.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
        let wanted = bytes.count - bytes.count % Self.blockByteCount
        guard wanted > 0, offset % Int64(Self.blockByteCount) == 0,
            let address = bytes.baseAddress, Int(bitPattern: address) % Self.alignment == 0,
            let descriptor = usableDescriptor()
        else { return 0 }
        var done = 0
        // After a short write the rest may begin within a block; it is left to the caller.
        while done < wanted, done % Self.blockByteCount == 0 {
            let count = pwrite(
                descriptor, address + done, wanted - done, off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            if count < 0, [EINVAL, EOPNOTSUPP].contains(errno) {
                // Another call may be writing through the descriptor, so it stays open.
                state.withLock { $0.isRefused = true }
                return done
            }
            guard count > 0 else {
                throw FileError(
                    operation: "pwrite", path: path, number: count < 0 ? errno : ENOSPC)
            }
            done += count
        }
        return done
    }

    private func usableDescriptor() -> Int32? {
        state.withLock { state in
            // By descriptor, not by name: the file may have been renamed.
            let descriptor =
                state.descriptor
                ?? open("/proc/self/fd/\(original)", O_WRONLY | __O_DIRECT | O_CLOEXEC)
            // Running out of descriptors is temporary, so a later call retries.
            if descriptor >= 0 || ![EMFILE, ENFILE].contains(errno) {
                state.descriptor = descriptor
            }
            return descriptor < 0 || state.isRefused ? nil : descriptor
        }
    }
}
