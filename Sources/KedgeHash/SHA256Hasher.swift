internal import CCrypto
package import KedgeModel

/// A running SHA-256 with libcrypto. Its state can be saved at any byte and restored later, also in
/// another process.
///
/// A value: copies continue independently. An update blocks for about a second per gigabyte, so
/// large buffers belong on a thread pool, not on an event loop.
package struct SHA256Hasher: Sendable {
    var context: SHA256_CTX

    /// Number of bytes hashed so far.
    package internal(set) var byteCount: Int64

    /// A hasher that has seen no bytes.
    package init() {
        context = SHA256_CTX()
        byteCount = 0
        SHA256_Init(&context)
    }

    /// Hashes more bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        SHA256_Update(&context, base, bytes.count)
        byteCount += Int64(bytes.count)
    }

    /// Hashes more bytes.
    package mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Reads bytes and hashes them, one buffer at a time, until the hash covers `end` bytes or the
    /// source has no more. Blocks the calling thread.
    ///
    /// - Parameters:
    ///   - buffer: Memory for one read.
    ///   - source: Fills the memory with the bytes after those hashed so far, and returns their
    ///     number; zero at the end.
    package mutating func update<Failure: Error>(
        upTo end: Int64, through buffer: UnsafeMutableRawBufferPointer,
        reading source: (
            _ memory: UnsafeMutableRawBufferPointer, _ hashedByteCount: Int64
        ) throws(Failure) -> Int
    ) throws(Failure) {
        while byteCount < end {
            let limit = min(buffer.count, Int(clamping: end - byteCount))
            let memory = UnsafeMutableRawBufferPointer(rebasing: buffer[..<limit])
            let count = try source(memory, byteCount)
            guard count > 0 else { return }
            update(UnsafeRawBufferPointer(rebasing: memory[..<count]))
        }
    }

    /// The digest of the bytes so far; the hasher can continue.
    package func digest() -> SHA256Digest {
        var copy = context
        let bytes = [UInt8](unsafeUninitializedCapacity: SHA256Digest.byteCount) { buffer, count in
            SHA256_Final(buffer.baseAddress, &copy)
            count = SHA256Digest.byteCount
        }
        guard let digest = SHA256Digest(bytes: bytes) else {
            preconditionFailure("SHA-256 gives 32 bytes")
        }
        return digest
    }

    /// Returns the digest of the bytes.
    package static func digest(of bytes: [UInt8]) -> SHA256Digest {
        var hasher = SHA256Hasher()
        hasher.update(bytes)
        return hasher.digest()
    }
}

extension SHA256Hasher {
    /// Size of the fixed part of a saved state: version, words, length.
    private static let fixedByteCount = 1 + 32 + 8
    private static let stateVersion: UInt8 = 1

    /// The serialized state: version 1, the eight words (big endian), the byte count (big endian),
    /// then the bytes of the unfinished 64-byte block. At most 104 bytes.
    package var savedState: [UInt8] {
        var state: [UInt8] = [Self.stateVersion]
        withUnsafeBytes(of: context.h) { words in
            for word in words.bindMemory(to: UInt32.self) { state.append(contentsOf: word.bytes) }
        }
        state.append(contentsOf: UInt64(byteCount).bytes)
        withUnsafeBytes(of: context.data) { state.append(contentsOf: $0.prefix(Int(context.num))) }
        return state
    }

    /// Restores a saved state; nil when the bytes are not a valid one.
    package init?(savedState state: [UInt8]) {
        guard state.count >= Self.fixedByteCount, state[0] == Self.stateVersion else { return nil }
        let length = state[33..<41].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let block = state[Self.fixedByteCount...]
        guard length <= UInt64(Int64.max / 8), block.count == Int(length % 64) else { return nil }
        self.init()
        withUnsafeMutableBytes(of: &context.h) { raw in
            let words = raw.bindMemory(to: UInt32.self)
            for index in 0..<8 {
                words[index] = state[(1 + 4 * index)..<(5 + 4 * index)]
                    .reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
        }
        withUnsafeMutableBytes(of: &context.data) { $0.copyBytes(from: block) }
        context.num = UInt32(block.count)
        byteCount = Int64(length)
        setLibraryLength()
    }

    /// Restores a saved state that was recorded with its number of bytes; nil when the state is not
    /// valid or covers another number.
    package init?(savedState state: [UInt8], byteCount: Int64) {
        self.init(savedState: state)
        guard self.byteCount == byteCount else { return nil }
    }

    /// Sets the library's length field, which counts bits in two words.
    mutating func setLibraryLength() {
        context.Nl = UInt32(truncatingIfNeeded: byteCount << 3)
        context.Nh = UInt32(truncatingIfNeeded: byteCount >> 29)
    }
}

extension FixedWidthInteger {
    /// The bytes in big-endian order.
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
