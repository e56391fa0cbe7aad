import Foundation

/// What a ``FaultyProxy`` does to the bytes that pass through it.
struct Faults: Sendable, Hashable {
    /// Which bytes are harmed; the others pass.
    enum Direction: Sendable, Hashable {
        /// From client to server.
        case up
        /// From server to client.
        case down
    }

    /// How a connection ends before its time.
    enum Cut: Sendable, Hashable, CaseIterable {
        /// Politely: the receiver gets every byte sent so far, then the end.
        case finish
        /// With a reset: what the receiver has not read is lost.
        case reset
    }

    var direction = Direction.up
    /// Cuts every connection after so many bytes of the direction.
    var cutsAfter: Int?
    var cut = Cut.finish
    /// Cuts every connection after so many answers with a body, between two messages.
    var cutsAfterAnswers: Int?
    /// Goes silent on the first `stallCount` connections after so many bytes, and holds them open.
    var stallsAfter: Int?
    var stallCount = 1
    /// Flips one bit in every so many bytes of large bodies.
    var flipsEvery: Int?
    /// Bytes a second, both directions of all connections together.
    var bytesPerSecond: Int?
}

/// Follows a stream of HTTP/1.1 messages just far enough to know which bytes are bodies.
struct MessageTracker {
    private enum Position {
        case head([UInt8])
        case body(Int)
    }
    private var position = Position.head([])
    private var isLarge = false
    /// Heads of messages that began, complete ones only.
    private(set) var heads: [String] = []
    /// Messages with a body that ended.
    private(set) var bodyCount = 0

    /// Bodies below this are talk, not files.
    private static let minLargeByteCount = 64 << 10

    /// Takes the next bytes.
    ///
    /// - Returns: Where large bodies lie in them.
    mutating func follow(_ bytes: ArraySlice<UInt8>) -> [Range<Int>] {
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
        let head = String(decoding: bytes, as: UTF8.self)
        heads.append(head)
        let length = HeadFields(head)["content-length"].flatMap { Int($0) } ?? 0
        isLarge = length >= Self.minLargeByteCount
        return length > 0 ? .body(length) : .head([])
    }
}

/// The fields of a message's head, by lower-case name.
struct HeadFields: Sendable {
    let firstLine: String
    private var values: [String: String] = [:]

    init(_ head: String) {
        let lines = head.split(separator: "\r\n")
        firstLine = lines.first.map(String.init) ?? ""
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            values[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
    }

    subscript(name: String) -> String? { values[name] }

    /// The range that a `Range: bytes=a-b` asks for.
    var range: Range<Int>? {
        guard let value = self["range"], value.hasPrefix("bytes=") else { return nil }
        let ends = value.dropFirst(6).split(separator: "-").compactMap { Int($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]..<ends[1] + 1 : nil
    }
}
