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
    /// How much of what is there already is asked for again and compared; 64 KiB. Less on a link that
    /// does not carry as much at a time.
    var overlapByteCount: Int64 = 64 << 10

    /// Bytes that are not there yet.
    var missing: ByteRange { ByteRange(start: range.start + part.byteCount, end: range.end) }
    var isWhole: Bool { part.byteCount == range.byteCount }

    /// A try brought nothing new.
    mutating func shortenOverlap() { overlapByteCount = max(1 << 10, overlapByteCount / 4) }

    /// What arrived is in doubt: the chunk begins anew.
    mutating func reset(at now: Timestamp) {
        part = ChunkPart()
        pace = PartialPace(limits: pace.limits, at: now)
    }
}
