internal import Glibc
internal import KedgeLocks

/// Writes to an open file past the page cache, as far as the file system and the alignment allow.
///
/// The kernel takes such writes only in whole blocks, from aligned memory and through a descriptor of
/// their own (`O_DIRECT`, open(2)). That one is opened at the first write, and closed with this object.
final class UncachedWriter: Sendable {
    private struct State {
        /// Nil before the first write, negative when it could not be opened.
        var descriptor: Int32?
        /// The file system refused such a write.
        var isRefused = false
    }

    /// Offsets, lengths and addresses are multiples of this. Devices ask for 512 or 4096 bytes.
    static let alignment = 4096

    private let original: Int32
    private let path: String
    private let state = Mutex(State())

    /// - Parameter descriptor: Of the file; stays open at least until the last call.
    init(descriptor: Int32, path: String) {
        original = descriptor
        self.path = path
    }

    deinit {
        if let descriptor = state.withLock({ $0.descriptor }), descriptor >= 0 { close(descriptor) }
    }

    /// Writes as many of the first bytes as can be written this way; blocks.
    ///
    /// - Returns: How many were written. The rest is for the ordinary way.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
        let wanted = bytes.count - bytes.count % Self.alignment
        guard wanted > 0, offset % Int64(Self.alignment) == 0,
            let address = bytes.baseAddress, Int(bitPattern: address) % Self.alignment == 0,
            let descriptor = usableDescriptor()
        else { return 0 }
        var done = 0
        // After a short write the rest may begin within a block, and is left.
        while done < wanted, done % Self.alignment == 0 {
            let count = pwrite(
                descriptor, address + done, wanted - done, off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            if count < 0, [EINVAL, EOPNOTSUPP].contains(errno) {
                // Others may be writing through the descriptor; it stays open.
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
            // By descriptor, not by name: the file may have another name by now.
            let descriptor =
                state.descriptor
                ?? open("/proc/self/fd/\(original)", O_WRONLY | __O_DIRECT | O_CLOEXEC)
            // Too many open files are so only for now.
            if descriptor >= 0 || ![EMFILE, ENFILE].contains(errno) {
                state.descriptor = descriptor
            }
            return descriptor < 0 || state.isRefused ? nil : descriptor
        }
    }
}
