internal import KedgeHash
internal import KedgeModel

/// Reads one copy of a blob and compares it with the digests of its chunks.
struct BlobReading {
    let scrubber: ByteScrubber
    let tally: CheckTally
    /// True where an error of the store is one of its disk: bytes that a disk cannot give are damaged.
    let failsForGood: Bool

    /// - Parameters:
    ///   - first: Chunks from the start that are known to be right.
    ///   - checked: Called after each chunk with how many are right now; false stops reading.
    /// - Returns: `undecided` also when it was stopped.
    func verdict(
        on reader: any BlobReader, _ layout: ChunkLayout, _ digests: [SHA256Digest],
        from first: Int = 0, checked: (Int) async throws -> Bool = { _ in true }
    ) async throws -> ScrubVerdict {
        guard reader.byteCount == layout.fileSize else { return .damaged }
        for index in digests.indices.dropFirst(first) {
            guard let range = layout.range(ofChunk: index) else { return .damaged }
            do {
                // The digests of all chunks say as much as that of the file, for less.
                let hashes = try await scrubber.hash(
                    range, of: reader, RunningHashes(wholeEnd: 0), countingIn: tally)
                guard hashes.piece.digest() == digests[index] else { return .damaged }
            } catch ByteStoreError.notFound {
                return .damaged
            } catch ByteStoreError.failed {
                try Task.checkCancellation()
                return failsForGood ? .damaged : .undecided
            } catch is ByteStoreError {
                try Task.checkCancellation()
                return .undecided
            }
            guard try await checked(index + 1) else { return .undecided }
        }
        return .right
    }
}
