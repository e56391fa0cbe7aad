import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting

/// A file whose pages all differ. It is generated quickly, and equal for equal seeds.
struct SampleFile: Sendable {
    let path: String
    let byteCount: Int
    let digest: SHA256Digest

    /// Writes a file.
    static func write(_ path: String, byteCount: Int, seed: UInt64) throws -> SampleFile {
        let content = bytes(byteCount, seed: seed)
        guard FileManager.default.createFile(atPath: path, contents: Data(content)) else {
            throw TestFailure("cannot write \(path)")
        }
        return SampleFile(
            path: path, byteCount: byteCount, digest: SHA256Hasher.digest(of: content))
    }

    static func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SplitMix64(seed: seed)
        let block = (0..<8192).map { _ in generator.next() }
        let blockSize = block.count * 8
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            block.withUnsafeBytes { block in
                for start in stride(from: 0, to: count, by: blockSize) {
                    let rest = UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(buffer)[start...])
                    rest.copyMemory(
                        from: UnsafeRawBufferPointer(
                            rebasing: block.prefix(min(blockSize, rest.count))))
                }
            }
            let all = UnsafeMutableRawBufferPointer(buffer)
            for page in stride(from: 0, through: count - 8, by: 4096) {
                all.storeBytes(of: generator.next(), toByteOffset: page, as: UInt64.self)
            }
            initializedCount = count
        }
    }

    /// The SHA-256 of a file.
    static func digest(of path: String) throws -> SHA256Digest {
        guard let file = FileHandle(forReadingAtPath: path) else { throw TestFailure("no \(path)") }
        defer { try? file.close() }
        var hasher = SHA256Hasher()
        while let data = try file.read(upToCount: 1 << 20), !data.isEmpty {
            data.withUnsafeBytes { hasher.update($0) }
        }
        return hasher.digest()
    }
}

/// Seeds for randomized tests: a fixed one, and a new one in each run. The name of the test case
/// shows it; `TEST_SEED` repeats it.
enum Seeds {
    static let all: [UInt64] = [1, fresh]

    private static let fresh: UInt64 =
        ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) }
        ?? UInt64.random(in: 2...999_999)
}
