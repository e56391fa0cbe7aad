internal import CCrypto
internal import CSHA256

extension SHA256Hasher {
    /// Updates two computations with the same bytes. With all paths but libcrypto this takes less
    /// time than two updates, and with SHA instructions about the time of one.
    ///
    /// Used to hash a chunk together with its file. It is fast when both are at the same position
    /// in their blocks of 64 bytes, as they are for chunk sizes that are a multiple of 64.
    ///
    /// - Parameter path: Must be supported.
    package static func update(
        _ first: inout SHA256Hasher, _ second: inout SHA256Hasher,
        with bytes: UnsafeRawBufferPointer, path: SHA256PairPath = .current
    ) {
        precondition(path.isSupported, "the processor does not support \(path.rawValue)")
        guard let instructions = path.instructions, first.bytesInBlock == second.bytesInBlock else {
            first.update(bytes)
            second.update(bytes)
            return
        }
        // Up to the next block boundary, the complete blocks, the rest.
        let head = min((blockByteCount - first.bytesInBlock) % blockByteCount, bytes.count)
        let blockCount = (bytes.count - head) / blockByteCount
        let tail = head + blockCount * blockByteCount
        let start = UnsafeRawBufferPointer(rebasing: bytes[..<head])
        first.update(start)
        second.update(start)
        let blocks = UnsafeRawBufferPointer(rebasing: bytes[head..<tail])
        updateBlocks(&first, &second, blocks, instructions)
        let rest = UnsafeRawBufferPointer(rebasing: bytes[tail...])
        first.update(rest)
        second.update(rest)
    }

    private static let blockByteCount = 64

    /// Number of bytes of an unfinished block in the state.
    private var bytesInBlock: Int { Int(byteCount % Int64(Self.blockByteCount)) }

    private static func updateBlocks(
        _ first: inout SHA256Hasher, _ second: inout SHA256Hasher,
        _ blocks: UnsafeRawBufferPointer, _ instructions: kedge_sha256_pair_path
    ) {
        guard let base = blocks.baseAddress, !blocks.isEmpty else { return }
        withUnsafeMutableBytes(of: &first.context.h) { firstWords in
            withUnsafeMutableBytes(of: &second.context.h) { secondWords in
                kedge_sha256_pair_update(
                    instructions, firstWords.baseAddress?.assumingMemoryBound(to: UInt32.self),
                    secondWords.baseAddress?.assumingMemoryBound(to: UInt32.self),
                    base.assumingMemoryBound(to: UInt8.self), blocks.count / blockByteCount)
            }
        }
        first.countBytes(blocks.count)
        second.countBytes(blocks.count)
    }

    /// Counts bytes that were hashed without the library.
    private mutating func countBytes(_ count: Int) {
        byteCount += Int64(count)
        setLibraryLength()
    }
}
