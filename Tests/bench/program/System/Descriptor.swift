internal import Glibc

/// An open file or socket, closed with its last owner.
final class Descriptor: Sendable {
    let number: Int32

    /// Takes ownership of an open descriptor that a system call returned.
    ///
    /// - Throws: ``BenchFailure`` when the call failed.
    init(_ number: Int32, _ operation: String) throws {
        guard number >= 0 else { throw BenchFailure.system(operation) }
        self.number = number
    }

    convenience init(reading path: String) throws {
        try self.init(open(path, O_RDONLY | O_CLOEXEC), "open \(path)")
    }

    convenience init(creating path: String) throws {
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC
        try self.init(open(path, flags, 0o644), "create \(path)")
    }

    deinit {
        // No measurement depends on the result of close: contents are compared by reading.
        _ = close(number)
    }

    func writeAll(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = write(
                number, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw BenchFailure.system("write") }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits until the disk has all bytes written to the file.
    func sync() throws {
        guard fsync(number) == 0 else { throw BenchFailure.system("fsync") }
    }

    /// Fills the buffer from the offset on; reads fewer bytes only at the file's end.
    func readAll(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        var filled = 0
        while filled < buffer.count {
            let place = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = pread(number, place.baseAddress, place.count, offset + filled)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw BenchFailure.system("read") }
            if count == 0 { break }
            filled += count
        }
        return filled
    }
}
