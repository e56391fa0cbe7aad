/// A half-open range of bytes of a file: `start` is inside, `end` is not.
public struct ByteRange: Hashable, Sendable {
    /// Offset of the first byte.
    public let start: Int64
    /// Offset after the last byte; equal to `start` for an empty range.
    public let end: Int64

    /// - Precondition: `0 <= start <= end`. Values from the wire go through ``ContentRange`` first.
    public init(start: Int64, end: Int64) {
        precondition(0 <= start && start <= end, "a byte range runs forward from a valid offset")
        self.start = start
        self.end = end
    }

    /// Number of bytes.
    public var byteCount: Int64 { end - start }
    /// True when the range has no bytes.
    public var isEmpty: Bool { start == end }
}

/// The value of `Content-Range` (RFC 9110 section 14.4) in the forms that transfers use.
public struct ContentRange: Hashable, Sendable {
    /// The bytes carried, or nil for `bytes */total`.
    public let range: ByteRange?
    /// Size of the whole file, or nil for `*`.
    public let total: Int64?

    /// Creates a value without checks; ``description`` writes an empty range as `bytes */total`.
    public init(range: ByteRange?, total: Int64?) {
        self.range = range
        self.total = total
    }

    /// Parses `bytes first-last/total`, `bytes first-last/*` or `bytes */total`.
    ///
    /// Nil for anything else: other units, signs, spaces, overflow, a last byte before the first,
    /// or a last byte at or after the total.
    public init?(_ value: some StringProtocol) {
        let words = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let total = sides[1] == "*" ? nil : WireInteger.parse(sides[1])
        guard total != nil || sides[1] == "*" else { return nil }
        if sides[0] == "*" {
            guard total != nil else { return nil }
            self.init(range: nil, total: total)
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = WireInteger.parse(ends[0]),
            let last = WireInteger.parse(ends[1]), first <= last, last < Int64.max
        else { return nil }
        if let total, last >= total { return nil }
        self.init(range: ByteRange(start: first, end: last + 1), total: total)
    }
}

extension ContentRange: CustomStringConvertible {
    /// The header value.
    public var description: String {
        let totalText = total.map(String.init) ?? "*"
        guard let range, !range.isEmpty else { return "bytes */\(totalText)" }
        return "bytes \(range.start)-\(range.end - 1)/\(totalText)"
    }
}
