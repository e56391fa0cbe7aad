internal import KedgeModel

/// Bytes of a chunk that is not complete, in an object of their own.
struct Piece: Hashable, Sendable {
    private static let markLength = 16

    /// Offset in the file.
    let start: Int64
    let byteCount: Int64
    /// First half of the first half of the SHA-256, in hexadecimal: tells other bytes in the same place apart.
    let mark: String

    init(start: Int64, byteCount: Int64, digest: SHA256Digest) {
        self.start = start
        self.byteCount = byteCount
        mark = String(digest.hex.prefix(Self.markLength))
    }

    fileprivate init?(_ text: Substring) {
        let parts = text.split(separator: "+", omittingEmptySubsequences: false)
        guard parts.count == 3, let start = WireInteger.parse(parts[0]),
            let byteCount = WireInteger.parse(parts[1]), byteCount > 0,
            byteCount <= Int64.max - start, parts[2].utf8.count == Self.markLength,
            Hex.decode(parts[2]) != nil
        else { return nil }
        self.start = start
        self.byteCount = byteCount
        mark = String(parts[2])
    }

    var end: Int64 { start + byteCount }
    var range: Range<Int64> { start..<end }

    /// True when these are the bytes.
    func isMarked(_ digest: SHA256Digest) -> Bool { digest.hex.hasPrefix(mark) }

    fileprivate var text: String { "\(start)+\(byteCount)+\(mark)" }
}

/// The pieces that together are the first bytes of a chunk, in order and without gaps.
struct PieceList: Hashable, Sendable {
    /// More are merged, so that the text stays short and a chunk is put together from few.
    static let maxCount = 32
    private static let kind = "pieces:"

    private(set) var pieces: [Piece]

    init(_ pieces: [Piece]) { self.pieces = pieces }

    /// The list that a location names; empty without one, nil for a text that this store has not made or
    /// that does not begin at the chunk's start.
    init?(_ text: String?, from start: Int64) {
        guard let text else {
            pieces = []
            return
        }
        guard text.hasPrefix(Self.kind) else { return nil }
        pieces = []
        var end = start
        for part in text.dropFirst(Self.kind.count).split(separator: ",") {
            guard let piece = Piece(part), piece.start == end else { return nil }
            pieces.append(piece)
            end = piece.end
        }
    }

    var text: String { Self.kind + pieces.map(\.text).joined(separator: ",") }

    /// Where the bytes end; nil when there are none.
    var end: Int64? { pieces.last?.end }
}
