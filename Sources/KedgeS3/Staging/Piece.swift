package import KedgeModel

/// Bytes of an incomplete chunk, in an object of their own.
package struct Piece: Hashable, Sendable {
    private static let markLength = 16

    /// Offset in the file.
    let start: Int64
    package let byteCount: Int64
    /// First 16 hexadecimal digits of the SHA-256; distinguishes bytes at the same place.
    let mark: String

    package init(start: Int64, byteCount: Int64, digest: SHA256Digest) {
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

    /// Whether the mark matches the digest of the bytes.
    func isMarked(_ digest: SHA256Digest) -> Bool { digest.hex.hasPrefix(mark) }

    fileprivate var text: String { "\(start)+\(byteCount)+\(mark)" }
}

/// The pieces that form the first bytes of a chunk, in order and without gaps.
package struct PieceList: Hashable, Sendable {
    /// Largest number of pieces before they are merged, to keep the text and the number of reads
    /// small.
    static let maxCount = 32
    private static let kind = "pieces:"

    package private(set) var pieces: [Piece]

    package init(_ pieces: [Piece]) { self.pieces = pieces }

    /// Parses a location. Empty without one; nil for a text that this store has not written or that
    /// does not begin at the chunk's start.
    package init?(_ text: String?, from start: Int64) {
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

    package var text: String { Self.kind + pieces.map(\.text).joined(separator: ",") }

    /// Offset of the end of the bytes; nil when there are none.
    var end: Int64? { pieces.last?.end }
}
