internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The bytes of a complete upload, and what they must be.
struct PartBytes: Sendable {
    let byteCount: Int64
    let chunkSize: Int64
    /// Digests of all chunks, in their order.
    let digests: [SHA256Digest]
    let source: StoredByteSource
    /// Where the store can copy them from.
    let copySource: @Sendable () async throws -> CopySource?

    /// Holds a chunk against its digest.
    ///
    /// - Throws: ``DamagedPart``.
    func verify(_ index: Int, parts: EngineParts) async throws {
        guard index < digests.count else { throw DamagedPart(index: index) }
        let start = Int64(index) * chunkSize
        let range = start..<min(start + chunkSize, byteCount)
        guard try await digest(of: range, parts: parts, source) == digests[index] else {
            throw DamagedPart(index: index)
        }
    }
}

/// A chunk of an upload that is here is not what it was when it came.
struct DamagedPart: Error {
    let index: Int
    /// True when bytes of the chunk may have been copied already.
    var isCopied = false
}

/// Bytes of a part as the body of another append. Each chunk is read twice, and passed on only the second
/// time: by then it has been held against its digest, so that damage does not become a file of its own. What
/// is passed on is hashed, too, for a failing disk may say something else the second time.
struct PartBody: ByteBody {
    let bytes: PartBytes
    /// Offset in the part of the body's first byte.
    let start: Int64
    let parts: EngineParts

    var announcedByteCount: Int64? { bytes.byteCount - start }

    func makeReader() async throws -> any ByteReader { Reader(self) }

    private final class Reader: ByteReader {
        private let body: PartBody
        private var offset: Int64
        private var verifiedEnd: Int64
        /// Over what is passed on of a chunk; nil for one of which the first bytes were copied before.
        private var passed: SHA256Hasher?

        init(_ body: PartBody) {
            self.body = body
            (offset, verifiedEnd) = (body.start, body.start)
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            try Task.checkCancellation()
            let bytes = body.bytes
            guard offset < bytes.byteCount else { return false }
            if offset == verifiedEnd {
                let index = offset / bytes.chunkSize
                try await bytes.verify(Int(index), parts: body.parts)
                verifiedEnd = min((index + 1) * bytes.chunkSize, bytes.byteCount)
                passed = offset % bytes.chunkSize == 0 ? SHA256Hasher() : nil
            }
            let before = buffer.count
            try await bytes.source(buffer, offset, min(Int64(limit), verifiedEnd - offset))
            let count = buffer.count - before
            offset += Int64(count)
            try await check(buffer, count)
            return offset < bytes.byteCount
        }

        private func check(_ buffer: IOBuffer, _ count: Int) async throws {
            guard let hasher = passed else { return }
            let after = await body.parts.pool.compute {
                var after = hasher
                after.update(UnsafeRawBufferPointer(rebasing: buffer.bytes.suffix(count)))
                return after
            }
            passed = after
            guard offset == verifiedEnd else { return }
            let index = Int((offset - 1) / body.bytes.chunkSize)
            guard after.digest() == body.bytes.digests[index] else {
                throw DamagedPart(index: index, isCopied: true)
            }
        }
    }
}
