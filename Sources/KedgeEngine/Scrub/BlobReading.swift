internal import KedgeHash
internal import KedgeModel

/// Reads one copy of a blob and compares it with the digests of its chunks.
struct BlobReading {
    let scrubber: ByteScrubber
    let tally: CheckTally
    /// True where a store error comes from the disk: bytes that a disk cannot return are damaged.
    let failsForGood: Bool
    let layout: ChunkLayout
    /// The digests of all chunks, in order.
    let digests: [SHA256Digest]
    /// The file's SHA-256. When a chunk does not match the list, it shows whether the bytes or the
    /// list are wrong.
    let whole: SHA256Digest

    /// Reads the bytes and returns the result of the comparison.
    ///
    /// - Parameters:
    ///   - start: Number of bytes from the start that are already verified.
    ///   - proceed: Called after each chunk with the number of verified bytes; false stops reading.
    /// - Returns: Nil when `proceed` stopped it.
    func check(
        opening: () async throws -> (any BlobReader)?, from start: Int64 = 0,
        proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubResult? {
        do {
            guard let reader = try await opening() else { return .damaged }
            do {
                let result = try await compare(reader, from: start, proceed)
                await reader.close()
                return result
            } catch {
                await reader.close()
                throw error
            }
        } catch ByteStoreError.notFound {
            return .damaged
        } catch ByteStoreError.failed {
            try Task.checkCancellation()
            return failsForGood ? .damaged : .undecided
        } catch is ByteStoreError {
            // A cancelled request to a bucket fails like any other.
            try Task.checkCancellation()
            return .undecided
        }
    }

    private func compare(
        _ reader: any BlobReader, from start: Int64, _ proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubResult? {
        guard reader.byteCount == layout.fileSize else { return .damaged }
        for index in digests.indices {
            guard let range = layout.range(ofChunk: index) else { return .damaged }
            guard range.end > start else { continue }
            // The chunk digests prove as much as the file's digest, for less work.
            let hashes = try await scrubber.hash(
                range, of: reader, RunningHashes(wholeEnd: 0), countingIn: tally)
            guard hashes.range.digest() == digests[index] else {
                return try await compareWhole(reader, proceed)
            }
            guard try await proceed(range.end) else { return nil }
        }
        return .right
    }

    /// Hashes the whole file: the chunk list may be wrong although the bytes are right.
    private func compareWhole(
        _ reader: any BlobReader, _ proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubResult? {
        var hashes = RunningHashes(wholeEnd: reader.byteCount)
        for index in digests.indices {
            guard let range = layout.range(ofChunk: index) else { return .damaged }
            hashes = try await scrubber.hash(range, of: reader, hashes, countingIn: tally)
            guard try await proceed(0) else { return nil }
        }
        return hashes.whole?.digest() == whole ? .right : .damaged
    }
}
