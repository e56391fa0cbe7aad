import KedgeTesting

/// A parsed answer of type `multipart/byteranges` (RFC 2046 section 5.1).
struct MultipartByteRanges {
    struct Malformed: Error {}

    struct Part {
        var contentType: String?
        var contentRange: String?
        var body: [UInt8]
    }

    let parts: [Part]

    /// - Throws: ``Malformed``, also for anything between the parts.
    init(_ answer: HTTPAnswer) throws {
        let type = answer.field("Content-Type") ?? ""
        let prefix = "multipart/byteranges; boundary="
        guard type.hasPrefix(prefix) else { throw Malformed() }
        let delimiter = Array("\r\n--\(type.dropFirst(prefix.count))".utf8)
        // The first delimiter may come without its line end.
        var rest = (Array("\r\n".utf8) + answer.body)[...]
        if rest.starts(with: Array("\r\n\r\n".utf8)) { rest = rest.dropFirst(2) }
        guard rest.starts(with: delimiter) else { throw Malformed() }
        rest = rest.dropFirst(delimiter.count)
        var parts: [Part] = []
        while !rest.starts(with: Array("--".utf8)) {
            guard rest.starts(with: Array("\r\n".utf8)) else { throw Malformed() }
            rest = rest.dropFirst(2)
            let head = try Self.take(until: Array("\r\n\r\n".utf8), from: &rest)
            let body = try Self.take(until: delimiter, from: &rest)
            parts.append(Self.part(head: head, body: body))
        }
        guard Array(rest) == Array("--\r\n".utf8) else { throw Malformed() }
        self.parts = parts
    }

    private static func take(
        until end: [UInt8], from rest: inout ArraySlice<UInt8>
    ) throws -> [UInt8] {
        guard let place = rest.indices.first(where: { rest[$0...].starts(with: end) }) else {
            throw Malformed()
        }
        defer { rest = rest[(place + end.count)...] }
        return Array(rest[..<place])
    }

    private static func part(head: [UInt8], body: [UInt8]) -> Part {
        var fields: [String: String] = [:]
        for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n") {
            let pair = line.split(separator: ":", maxSplits: 1)
            guard pair.count == 2 else { continue }
            fields[pair[0].lowercased()] = String(pair[1].drop { $0 == " " })
        }
        return Part(
            contentType: fields["content-type"], contentRange: fields["content-range"], body: body)
    }
}
