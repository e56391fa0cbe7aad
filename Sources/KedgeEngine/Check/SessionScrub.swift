internal import KedgeHash
internal import KedgeModel

/// Reads the staging area of one session and compares every chunk, every partial and the prefix
/// with their hashes. Reads each byte once.
struct SessionScrub {
    let check: StoreCheck
    let scrubber: ByteScrubber
    let session: SessionRecord
    /// The comparison of rows and area; what the area lacks is already reported.
    let claims: SessionClaims
    let reader: any BlobReader

    /// Returns the findings that need the bytes.
    func findings() async throws -> [CheckFinding] {
        var damaged = ChunkSet()
        var unreadable = ChunkSet()
        var hashes = RunningHashes(wholeEnd: session.prefix?.offset ?? 0)
        try await check.forEachChunk(of: session.id) { chunk in
            guard !claims.uncovered.contains(chunk.index),
                let start = session.layout.range(ofChunk: chunk.index)?.start
            else { return }
            let range = ByteRange(start: start, end: start + chunk.byteCount)
            guard let next = try await hash(range, hashes) else {
                hashes.whole = nil
                unreadable.insert(chunk.index)
                return
            }
            hashes = next
            if hashes.range.digest() != chunk.digest { damaged.insert(chunk.index) }
        }
        let partials = try await damagedPartials(&unreadable)
        var findings: [CheckFinding] = []
        if damaged.count > 0 { findings.append(claims.chunkFinding(damaged)) }
        if partials.count > 0 { findings.append(claims.partialFinding(partials)) }
        if unreadable.count > 0 {
            findings.append(
                CheckFinding(
                    .bytesUnreadable, session.id.text, "the bytes cannot be read",
                    chunks: unreadable))
        }
        // Damaged chunks always make the prefix wrong, too.
        if damaged.count == 0, isPrefixWrong(hashes) { findings.append(claims.prefixFinding) }
        return findings
    }

    private func damagedPartials(_ unreadable: inout ChunkSet) async throws -> ChunkSet {
        var damaged = ChunkSet()
        var failed = unreadable
        try await check.forEachPartial(of: session.id) { partial in
            guard claims.canHash(partialOf: partial.index),
                let start = session.layout.range(ofChunk: partial.index)?.start
            else { return }
            let range = ByteRange(start: start, end: start + partial.byteCount)
            guard let hashes = try await hash(range, RunningHashes(wholeEnd: 0)) else {
                failed.insert(partial.index)
                return
            }
            if hashes.range.savedState != partial.hashState { damaged.insert(partial.index) }
        }
        unreadable = failed
        return damaged
    }

    /// Returns nil when the bytes cannot be read.
    private func hash(_ range: ByteRange, _ hashes: RunningHashes) async throws -> RunningHashes? {
        do {
            return try await scrubber.hash(range, of: reader, hashes, countingIn: check.tally)
        } catch is ByteStoreError {
            // A cancelled request to a bucket fails like any other.
            try Task.checkCancellation()
            return nil
        }
    }

    private func isPrefixWrong(_ hashes: RunningHashes) -> Bool {
        guard let prefix = session.prefix, claims.hasUsablePrefix, let whole = hashes.whole,
            whole.byteCount == prefix.offset
        else { return false }
        return whole.savedState != prefix.state
    }
}
