internal import CCrypto
internal import CSHA256

extension SHA256Hasher {
    /// Carries two computations on over the same bytes: where the processor has instructions for
    /// SHA-256 in about the time of one, otherwise one after the other.
    ///
    /// That is how a chunk and the file that it is part of are hashed. It is quick when both stand at the
    /// same place in their blocks of 64 bytes, as they do in chunks whose size is a multiple of that.
    package static func update(
        _ first: inout SHA256Hasher, _ second: inout SHA256Hasher,
        with bytes: UnsafeRawBufferPointer
    ) {
        guard isPairSupported, first.bytesInBlock == second.bytesInBlock else {
            first.update(bytes)
            second.update(bytes)
            return
        }
        // Up to the next whole block, the whole blocks, the rest.
        let head = min((blockByteCount - first.bytesInBlock) % blockByteCount, bytes.count)
        let blockCount = (bytes.count - head) / blockByteCount
        let tail = head + blockCount * blockByteCount
        let start = UnsafeRawBufferPointer(rebasing: bytes[..<head])
        first.update(start)
        second.update(start)
        updateBlocks(&first, &second, UnsafeRawBufferPointer(rebasing: bytes[head..<tail]))
        let rest = UnsafeRawBufferPointer(rebasing: bytes[tail...])
        first.update(rest)
        second.update(rest)
    }

    /// True when ``update(_:_:with:)`` costs about as much as one computation.
    package static let isPairSupported = kedge_sha256_pair_is_supported()

    private static let blockByteCount = 64

    /// Bytes of an unfinished block that wait in the state.
    private var bytesInBlock: Int { Int(byteCount % Int64(Self.blockByteCount)) }

    private static func updateBlocks(
        _ first: inout SHA256Hasher, _ second: inout SHA256Hasher,
        _ blocks: UnsafeRawBufferPointer
    ) {
        guard let base = blocks.baseAddress, !blocks.isEmpty else { return }
        withUnsafeMutableBytes(of: &first.context.h) { firstWords in
            withUnsafeMutableBytes(of: &second.context.h) { secondWords in
                kedge_sha256_pair(
                    firstWords.baseAddress?.assumingMemoryBound(to: UInt32.self),
                    secondWords.baseAddress?.assumingMemoryBound(to: UInt32.self),
                    base.assumingMemoryBound(to: UInt8.self), blocks.count / blockByteCount)
            }
        }
        first.countBytes(blocks.count)
        second.countBytes(blocks.count)
    }

    /// Counts bytes that went past the library.
    private mutating func countBytes(_ count: Int) {
        byteCount += Int64(count)
        setLibraryLength()
    }
}
