internal import KedgeHash
internal import KedgeModel

/// A chunk that is being fetched.
struct ChunkFetch: Sendable {
    let index: Int
    let range: ByteRange
    let fileHashStep: FileHashStep
    /// The start of the fetch.
    let began = ContinuousClock.now
    /// Hashes of its bytes in the temporary file.
    var progress = ChunkProgress()
    var pace: CheckpointPace
    /// Tries that the record does not include yet.
    var uncountedTries = 1
    /// Digest of the last refused bytes, and how many times in a row it arrived.
    private(set) var wrongDigest: SHA256Digest?
    private(set) var sameDigestCount = 0
    /// Number of answers with a content coding, which no request asks for.
    var codedAnswerCount = 0
    /// Number of known bytes to request again for comparison. Shrinks on a link that breaks before
    /// it has carried as many.
    private(set) var overlapByteCount = Self.maxOverlapByteCount
    private static let maxOverlapByteCount: Int64 = 64 << 10

    var missing: ByteRange { ByteRange(start: range.start + progress.byteCount, end: range.end) }
    var isWhole: Bool { progress.byteCount == range.byteCount }

    /// Records the digest of a complete chunk that does not match the server's digest.
    mutating func noteWrong(_ digest: SHA256Digest) {
        sameDigestCount = digest == wrongDigest ? sameDigestCount + 1 : 1
        wrongDigest = digest
    }

    /// Adapts the overlap to one answer, of which the first bytes were known. Ignores an empty
    /// answer: it says nothing about the link, and a file may be replaced during an outage.
    mutating func noteArrival(of byteCount: Int64, overlapping knownByteCount: Int64) {
        if byteCount > 0, byteCount <= knownByteCount {
            overlapByteCount = max(1 << 10, overlapByteCount / 4)
        } else if byteCount - knownByteCount >= Self.maxOverlapByteCount {
            overlapByteCount = Self.maxOverlapByteCount
        }
    }

    /// Starts the chunk over, because its bytes are in doubt.
    mutating func reset(at now: Timestamp) {
        progress = ChunkProgress()
        pace = CheckpointPace(limits: pace.limits, at: now)
    }
}
