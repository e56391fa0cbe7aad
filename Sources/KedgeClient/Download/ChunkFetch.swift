internal import KedgeHash
internal import KedgeModel

/// One chunk while it is fetched.
struct ChunkFetch: Sendable {
    let index: Int
    let range: ByteRange
    let turn: FileHashTurn
    /// What there is of it in the temporary file.
    var part = ChunkPart()
    var pace: PartialPace
    /// Tries that are not in the record yet.
    var uncountedTries = 1
    /// The digest of the bytes that were refused last, and how often in a row it was that one.
    private(set) var wrongDigest: SHA256Digest?
    private(set) var sameDigestCount = 0
    /// How much of what is there already is asked for again and compared. Less on a link that breaks
    /// before it has carried as much.
    private(set) var overlapByteCount = Self.maxOverlapByteCount
    private static let maxOverlapByteCount: Int64 = 64 << 10

    /// Bytes that are not there yet.
    var missing: ByteRange { ByteRange(start: range.start + part.byteCount, end: range.end) }
    var isWhole: Bool { part.byteCount == range.byteCount }

    /// The whole chunk arrived, with another digest than the server announced.
    mutating func noteWrong(_ digest: SHA256Digest) {
        sameDigestCount = digest == wrongDigest ? sameDigestCount + 1 : 1
        wrongDigest = digest
    }

    /// Fits the overlap to the bytes that one answer brought, of which the first were known. An answer
    /// without bytes says nothing about the link, and an outage is when files are replaced.
    mutating func noteArrival(of byteCount: Int64, overlapping knownByteCount: Int64) {
        if byteCount > 0, byteCount <= knownByteCount {
            overlapByteCount = max(1 << 10, overlapByteCount / 4)
        } else if byteCount - knownByteCount >= Self.maxOverlapByteCount {
            overlapByteCount = Self.maxOverlapByteCount
        }
    }

    /// What arrived is in doubt: the chunk begins anew.
    mutating func reset(at now: Timestamp) {
        part = ChunkPart()
        pace = PartialPace(limits: pace.limits, at: now)
    }
}
