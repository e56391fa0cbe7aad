internal import Glibc

/// The source of all uploads: one file of random bytes in the page cache, written before any clock
/// starts.
final class SourceFile: Sendable {
    let path: String
    let byteCount: Int
    let file: Descriptor
    private let knownDigests = SharedValue<[Int: [String]]>([:])

    private static let bufferByteCount = 1 << 20

    init(in scratch: Scratch, byteCount: Int) throws {
        path = "\(scratch.path)/source"
        self.byteCount = byteCount
        file = try Descriptor(creating: path)
        var random = RandomWords()
        var words = [UInt64](repeating: 0, count: Self.bufferByteCount / 8)
        var rest = byteCount
        while rest > 0 {
            for index in words.indices { words[index] = random.next() }
            let count = min(rest, Self.bufferByteCount)
            try words.withUnsafeBytes { try file.writeAll(.init(rebasing: $0[..<count])) }
            rest -= count
        }
    }

    /// Copies a part into a file of its own.
    func copy(at offset: Int, byteCount: Int, to path: String) throws {
        let copy = try Descriptor(creating: path)
        var place = off_t(offset)
        let end = offset + byteCount
        while place < end {
            let count = sendfile(copy.number, file.number, &place, end - Int(place))
            guard count > 0 else { throw BenchFailure.system("copy to \(path)") }
        }
    }

    /// Computes the digest of a part as hexadecimal digits.
    func digest(at offset: Int, byteCount: Int) throws -> String {
        var digest = LibcryptoDigest()
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.bufferByteCount, alignment: 64)
        defer { buffer.deallocate() }
        var done = 0
        while done < byteCount {
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer[..<min(buffer.count, byteCount - done)])
            guard try file.readAll(at: offset + done, into: part) == part.count else {
                throw BenchFailure("the source file is shorter than it was")
            }
            digest.update(UnsafeRawBufferPointer(part))
            done += part.count
        }
        return digest.hexadecimal()
    }

    /// Digests of the first chunks of this size, computed on all cores and kept. There may be more
    /// than requested when an earlier call requested more.
    func chunkDigests(_ chunkByteCount: Int, count: Int) throws -> [String] {
        let known = knownDigests.current[chunkByteCount] ?? []
        guard known.count < count else { return known }
        let workers = Machine.coreCount
        let parts = try concurrently(workers) { worker in
            try stride(from: known.count + worker, to: count, by: workers).map { index in
                try self.digest(at: index * chunkByteCount, byteCount: chunkByteCount)
            }
        }
        let digests = known + (0..<count - known.count).map { parts[$0 % workers][$0 / workers] }
        knownDigests.change { $0[chunkByteCount] = digests }
        return digests
    }

    /// Whether the second begins with the first. Far faster than a comparison of collections, for
    /// gigabytes.
    private static func areEqual(
        _ first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let one = first.baseAddress, let other = second.baseAddress else { return false }
        return memcmp(one, other, first.count) == 0
    }

    /// Whether another file begins with the first bytes of this one and ends there.
    func isEqual(toFile path: String, byteCount: Int) throws -> Bool {
        let other = try Descriptor(reading: path)
        let size = Self.bufferByteCount
        let ours = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 64)
        let theirs = UnsafeMutableRawBufferPointer.allocate(byteCount: size + 1, alignment: 64)
        defer {
            ours.deallocate()
            theirs.deallocate()
        }
        var done = 0
        while done < byteCount {
            let part = UnsafeMutableRawBufferPointer(
                rebasing: ours[..<min(size, byteCount - done)])
            _ = try file.readAll(at: done, into: part)
            let count = try other.readAll(at: done, into: .init(rebasing: theirs[..<part.count]))
            guard count == part.count, Self.areEqual(part, theirs) else { return false }
            done += count
        }
        return try other.readAll(at: byteCount, into: .init(rebasing: theirs[..<1])) == 0
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): fast, and no two pages are equal.
private struct RandomWords {
    private var state: UInt64 = 0x6b65_6467_65

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }
}
