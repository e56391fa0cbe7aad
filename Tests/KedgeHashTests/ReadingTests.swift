import KedgeHash
import KedgeTesting
import Testing

/// Bytes that are read and hashed through one buffer.
struct ReadingTests {
    private struct Failure: Error {}

    /// Continues a hash over the bytes, read through a buffer of this size.
    private func hash(
        _ bytes: [UInt8], from hasher: SHA256Hasher = SHA256Hasher(), upTo end: Int64,
        bufferByteCount: Int = 64, largestRead: Int = .max
    ) -> SHA256Hasher {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: bufferByteCount, alignment: 1)
        defer { buffer.deallocate() }
        var hasher = hasher
        hasher.update(upTo: end, through: buffer) { memory, hashedByteCount in
            let rest = bytes[Int(hashedByteCount)...].prefix(min(memory.count, largestRead))
            memory.copyBytes(from: rest)
            return rest.count
        }
        return hasher
    }

    @Test(arguments: [1, 63, 64, 999, 1000, 4096], [1, 64, Int.max])
    func `bytes have one digest, however they are read`(bufferByteCount: Int, largestRead: Int) {
        var generator = SplitMix64(seed: 1)
        let bytes = generator.bytes(1000)
        var begun = SHA256Hasher()
        begun.update(Array(bytes[..<300]))
        for hasher in [SHA256Hasher(), begun] {
            let hashed = hash(
                bytes, from: hasher, upTo: 1000, bufferByteCount: bufferByteCount,
                largestRead: largestRead)
            #expect(hashed.digest() == SHA256Hasher.digest(of: bytes))
        }
    }

    @Test func `a hash stops at its end, or where its source ends`() {
        let bytes = [UInt8](repeating: 1, count: 100)
        #expect(hash(bytes, upTo: 70).byteCount == 70)
        #expect(hash(bytes, upTo: 0).byteCount == 0)
        #expect(hash(bytes, upTo: .max).byteCount == 100)
    }

    @Test func `a hash keeps the bytes before a failed read`() {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        var hasher = SHA256Hasher()
        #expect(throws: Failure.self) {
            try hasher.update(upTo: 1000, through: buffer) { memory, hashedByteCount in
                if hashedByteCount == 128 { throw Failure() }
                memory.initializeMemory(as: UInt8.self, repeating: 1)
                return memory.count
            }
        }
        #expect(hasher.digest() == SHA256Hasher.digest(of: [UInt8](repeating: 1, count: 128)))
    }
}
