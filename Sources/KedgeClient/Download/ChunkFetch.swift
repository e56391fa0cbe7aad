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
    /// How often its bytes had another digest than the server announced.
    var mismatchCount = 0

    /// Bytes that are not there yet.
    var missing: ByteRange { ByteRange(start: range.start + part.byteCount, end: range.end) }
    var isWhole: Bool { part.byteCount == range.byteCount }

    /// What arrived is in doubt: the chunk begins anew.
    mutating func reset(at now: Timestamp) {
        part = ChunkPart()
        pace = PartialPace(limits: pace.limits, at: now)
    }
}
