internal import Foundation

/// A message of HTTP/1.1: its first line, its fields in order, and its complete body.
package struct PassingMessage: Sendable {
    package var firstLine: String
    private var fields: [(name: String, value: String)] = []
    package var body: [UInt8] = []

    package init(_ firstLine: String, body: [UInt8] = []) {
        self.firstLine = firstLine
        self.body = body
    }

    /// Parses a head that includes its empty line.
    fileprivate init(head: ArraySlice<UInt8>) {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        firstLine = lines.first.map(String.init) ?? ""
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
    package static func exchange(_ request: PassingMessage, with port: UInt16) -> PassingMessage? {
        guard let socket = Loopback.connect(to: port) else { return nil }
        defer { close(socket) }
        guard Loopback.send(request.bytes, to: socket) else { return nil }
        let reader = MessageReader(socket: socket)
        while var answer = reader.readHead() {
            if (100...199).contains(answer.status) { continue }
            let hasBody = request.method != "HEAD" && ![204, 304].contains(answer.status)
            guard !hasBody || reader.readBody(of: &answer, isAnswer: true) else { return nil }
            return answer
        }
        return nil
    }
}

/// Reads messages from a connection, one after the other. Used by one thread.
package final class MessageReader {
    private let socket: Int32
    private var buffer: [UInt8] = []

    package init(socket: Int32) { self.socket = socket }

    /// Reads up to the end of a head; nil at the end of the connection.
    package func readHead() -> PassingMessage? {
        let end = Array("\r\n\r\n".utf8)
        var searched = 0
        while true {
            while searched + 4 <= buffer.count {
                if buffer[searched] == end[0], buffer[searched..<searched + 4].elementsEqual(end) {
                    let message = PassingMessage(head: buffer[..<(searched + 4)])
                    buffer.removeFirst(searched + 4)
                    return message
                }
                searched += 1
            }
            guard fill() else { return nil }
        }
    }

    /// Reads the rest of a message whose head was read.
    ///
    /// - Returns: False when the connection ended before the body did.
    package func readBody(of message: inout PassingMessage, isAnswer: Bool) -> Bool {
        if message["Transfer-Encoding"]?.lowercased() == "chunked" {
            return readChunks(into: &message.body)
        }
        if let count = message["Content-Length"].flatMap({ Int($0) }) {
            guard let body = take(count) else { return false }
            message.body = body
        } else if isAnswer {
            while fill() {}
            message.body = buffer
            buffer = []
        }
        return true
    }

    private func readChunks(into body: inout [UInt8]) -> Bool {
        while true {
            guard let line = takeLine(), let count = Int(line, radix: 16),
                let bytes = take(count), takeLine() != nil
            else { return false }
            if count == 0 { return true }
            body += bytes
        }
    }

    private func takeLine() -> String? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeFirst(end + 1)
                return line.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            guard fill() else { return nil }
        }
    }

    private func take(_ count: Int) -> [UInt8]? {
        while buffer.count < count { guard fill() else { return nil } }
        let taken = Array(buffer[..<count])
        buffer.removeFirst(count)
        return taken
    }

    private func fill() -> Bool {
        let socket = socket
        var count = 0
        let piece = [UInt8](unsafeUninitializedCapacity: 256 << 10) { bytes, initialized in
            count = recv(socket, bytes.baseAddress, bytes.count, 0)
            initialized = max(0, count)
        }
        buffer += piece
        return count > 0
    }
}
