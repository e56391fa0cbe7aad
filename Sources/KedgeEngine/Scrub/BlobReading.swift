internal import KedgeHash
internal import KedgeModel

/// Reads one copy of a blob and compares it with the digests of its chunks.
struct BlobReading {
    let scrubber: ByteScrubber
    let tally: CheckTally
    /// True where an error of the store is one of its disk: bytes that a disk cannot give are damaged.
    let failsForGood: Bool
    let layout: ChunkLayout
    /// Of all chunks, in order.
    let digests: [SHA256Digest]
    /// The SHA-256 of the whole: where a chunk is not what the list says, it tells whether bytes or list are
    /// wrong.
    let whole: SHA256Digest

    /// - Parameters:
    ///   - start: Bytes from the start that are known to be right.
    ///   - proceed: Called after each chunk with how many bytes were found right; false stops reading.
    /// - Returns: Nil when it was stopped.
    func verdict(
        opening: () async throws -> (any BlobReader)?, from start: Int64 = 0,
        proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubVerdict? {
        do {
            guard let reader = try await opening() else { return .damaged }
            do {
                let verdict = try await compare(reader, from: start, proceed)
                await reader.close()
                return verdict
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
            // A request to a bucket that is cancelled fails like any other.
            try Task.checkCancellation()
            return .undecided
        }
    }

    private func compare(
        _ reader: any BlobReader, from start: Int64, _ proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubVerdict? {
        guard reader.byteCount == layout.fileSize else { return .damaged }
        for index in digests.indices {
            guard let range = layout.range(ofChunk: index) else { return .damaged }
            guard range.end > start else { continue }
            // The digests of all chunks say as much as that of the file, for less.
            let hashes = try await scrubber.hash(
                range, of: reader, RunningHashes(wholeEnd: 0), countingIn: tally)
            guard hashes.piece.digest() == digests[index] else {
                return try await compareWhole(reader, proceed)
            }
            guard try await proceed(range.end) else { return nil }
        }
        return .right
    }

    /// The list of a file may be wrong while its bytes are right: rows rot, too.
    private func compareWhole(
        _ reader: any BlobReader, _ proceed: (Int64) async throws -> Bool
    ) async throws -> ScrubVerdict? {
        var hashes = RunningHashes(wholeEnd: reader.byteCount)
        for index in digests.indices {
            guard let range = layout.range(ofChunk: index) else { return .damaged }
            hashes = try await scrubber.hash(range, of: reader, hashes, countingIn: tally)
            guard try await proceed(0) else { return nil }
        }
        return hashes.whole?.digest() == whole ? .right : .damaged
    }
}
