internal import Foundation

/// A message of HTTP/1.1: its first line, its fields in order, and its complete body.
package struct HTTPMessage: Sendable {
    package var firstLine: String
    private var fields: [(name: String, value: String)] = []
    package var body: [UInt8] = []
    /// The lines of the head as they arrived; none in a message that a test made.
    package private(set) var lines: [String] = []

    package init(_ firstLine: String, body: [UInt8] = []) {
        self.firstLine = firstLine
        self.body = body
    }

    /// Parses a head, with or without its blank line.
    init(head: [UInt8]) {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n").map(String.init)
        self.lines = lines
        firstLine = lines.first ?? ""
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let value = parts[1].trimmingCharacters(in: .whitespaces)
            fields.append((String(parts[0]), value))
        }
    }

    /// The first value of a field; setting nil removes the field.
    package subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { fields.append((name, newValue)) }
        }
    }

    /// The range that a `Range: bytes=a-b` asks for.
    package var range: Range<Int>? {
        guard let value = self["Range"], value.hasPrefix("bytes=") else { return nil }
        let ends = value.dropFirst(6).split(separator: "-").compactMap { Int($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]..<ends[1] + 1 : nil
    }

    package var method: String { word(0) }
    package var path: String { word(1) }
    /// The status of an answer.
    package var status: Int { Int(word(1)) ?? 0 }

    private func word(_ position: Int) -> String {
        let words = firstLine.split(separator: " ")
        return position < words.count ? String(words[position]) : ""
    }

    /// The head and the body as they go over a connection.
    package var bytes: [UInt8] { head + body }

    package var head: [UInt8] {
        Array(
            (firstLine + "\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
                .utf8)
    }

    /// Announces the length of the body, and that the connection ends after it.
    package mutating func delimitByLength() {
        self["Transfer-Encoding"] = nil
        // An answer to HEAD keeps the length of the body that it does not carry.
        if !body.isEmpty || self["Content-Length"] == nil {
            self["Content-Length"] = "\(body.count)"
        }
        self["Connection"] = "close"
    }

    /// Sends a request to a server over a connection of its own.
    ///
    /// - Returns: The answer; nil when no complete one arrived.
    package static func exchange(_ request: HTTPMessage, with port: UInt16) -> HTTPMessage? {
        guard let connection = try? LoopbackConnection(port: port) else { return nil }
        defer { connection.close() }
        guard connection.send(request.bytes) else { return nil }
        while var answer = connection.readHead() {
            if (100...199).contains(answer.status) { continue }
            let hasBody = request.method != "HEAD" && ![204, 304].contains(answer.status)
            guard !hasBody || connection.readBody(of: &answer, isAnswer: true) else { return nil }
            return answer
        }
        return nil
    }
}
