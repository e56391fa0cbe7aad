internal import Foundation
internal import KedgeModel

/// A request as bytes. Nothing is checked: the server gets exactly the test's bytes.
package struct HTTPRequestBytes: Sendable {
    package var method: String
    package var target: String
    package var fields: [(name: String, value: String)] = []
    package var body: [UInt8]?

    package init(
        _ method: String, _ target: String, _ fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) {
        self.method = method
        self.target = target
        self.fields = fields.map { (name: $0.0, value: $0.1) }
        self.body = body
    }

    /// The head. It announces the length of the body unless a field says how it ends.
    package var head: [UInt8] {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: localhost"]
        lines += fields.map { "\($0.name): \($0.value)" }
        let framing: Set = ["content-length", "transfer-encoding"]
        if let body, !fields.contains(where: { framing.contains($0.name.lowercased()) }) {
            lines.append("Content-Length: \(body.count)")
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// The head and the body.
    package var bytes: [UInt8] { head + (body ?? []) }

    /// Returns the request with other values for some fields; nil removes a field.
    package func with(_ changes: [(String, String?)]) -> HTTPRequestBytes {
        var copy = self
        for (name, value) in changes {
            copy.fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let value { copy.fields.append((name: name, value: value)) }
        }
        return copy
    }

    /// Returns the request with the body as chunks of HTTP/1.1.
    package func chunked(_ pieces: [[UInt8]]) -> HTTPRequestBytes {
        var copy = with([("Content-Length", nil), ("Transfer-Encoding", "chunked")])
        var body: [UInt8] = []
        for piece in pieces where !piece.isEmpty {
            body += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece
            body += Array("\r\n".utf8)
        }
        copy.body = body + Array("0\r\n\r\n".utf8)
        return copy
    }
}

/// An answer as it arrived.
package struct HTTPAnswer: Sendable {
    package var status: Int
    package var fields: [(name: String, value: String)]
    package var body: [UInt8] = []
    /// False when the connection ended before the announced end of the body.
    package var isWhole = true

    /// Parses a head without its blank line; nil when it is no answer of HTTP/1.1.
    package init?(head: [UInt8]) {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else {
            return nil
        }
        self.status = status
        fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
            return (name: String(parts.first ?? ""), value: String(value))
        }
    }

    /// The value of a field by its name in any case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Bytes of the body that the head announces for the answer to a method.
    package func announcedByteCount(to method: String) -> Int {
        guard method != "HEAD", status >= 200, status != 204, status != 304 else { return 0 }
        return field("Content-Length").flatMap { Int($0) } ?? 0
    }

    /// The body decoded as JSON.
    package func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(body))
    }
}
