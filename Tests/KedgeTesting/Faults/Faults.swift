/// Faults that a ``FaultyProxy`` applies to the bytes that pass through it.
package struct Faults: Sendable, Hashable {
    package typealias Direction = RelayDirection

    /// How a connection ends before its time.
    package enum Cut: Sendable, Hashable, CaseIterable {
        /// In order: the receiver gets every byte sent so far, then the end.
        case finish
        /// With a reset: bytes that the receiver has not read are lost.
        case reset
    }

    /// The direction whose bytes are harmed; the others pass.
    package var direction = Direction.up
    /// Number of bytes of the direction after which every connection is cut.
    package var cutsAfter: Int?
    package var cut = Cut.finish
    /// Number of answers with a body after which every connection is cut, between two messages.
    package var cutsAfterAnswers: Int?
    /// Number of bytes after which the first `stallCount` connections go silent and stay open.
    package var stallsAfter: Int?
    package var stallCount = 1
    /// Number of bytes of large bodies for each bit that is flipped.
    package var flipsEvery: Int?
    /// Maximum number of bytes a second, in both directions of all connections together.
    package var bytesPerSecond: Int?

    package init(
        direction: Direction = Direction.up,
        cutsAfter: Int? = nil,
        cut: Cut = Cut.finish,
        cutsAfterAnswers: Int? = nil,
        stallsAfter: Int? = nil,
        stallCount: Int = 1,
        flipsEvery: Int? = nil,
        bytesPerSecond: Int? = nil
    ) {
        self.direction = direction
        self.cutsAfter = cutsAfter
        self.cut = cut
        self.cutsAfterAnswers = cutsAfterAnswers
        self.stallsAfter = stallsAfter
        self.stallCount = stallCount
        self.flipsEvery = flipsEvery
        self.bytesPerSecond = bytesPerSecond
    }
}

/// Follows a stream of HTTP/1.1 messages just far enough to know which bytes are bodies.
package struct MessageTracker {
    private enum Position {
        case head([UInt8])
        case body(Int)
    }
    private var position = Position.head([])
    private var isLarge = false
    /// Complete heads of messages that began.
    package private(set) var heads: [HTTPMessage] = []
    /// Number of messages with a body that ended.
    package private(set) var bodyCount = 0

    /// Smaller bodies are messages of the protocol, not files.
    private static let minLargeByteCount = 64 << 10

    /// Follows the next bytes.
    ///
    /// - Returns: The ranges of large bodies in them.
    package mutating func follow(_ bytes: ArraySlice<UInt8>) -> [Range<Int>] {
        var spans: [Range<Int>] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            switch position {
            case .head(var head):
                position = .head([])
                while index < bytes.endIndex {
                    head.append(bytes[index])
                    index += 1
                    if head.last == UInt8(ascii: "\n"), head.suffix(4) == Array("\r\n\r\n".utf8) {
                        break
                    }
                }
                position = head.suffix(4) == Array("\r\n\r\n".utf8) ? begin(head) : .head(head)
            case .body(let rest):
                let count = min(rest, bytes.endIndex - index)
                if isLarge { spans.append(index..<index + count) }
                index += count
                position = rest > count ? .body(rest - count) : .head([])
                if rest == count { bodyCount += 1 }
            }
        }
        return spans
    }

    private mutating func begin(_ bytes: [UInt8]) -> Position {
        let head = HTTPMessage(head: bytes)
        heads.append(head)
        let length = head["Content-Length"].flatMap { Int($0) } ?? 0
        isLarge = length >= Self.minLargeByteCount
        return length > 0 ? .body(length) : .head([])
    }
}
