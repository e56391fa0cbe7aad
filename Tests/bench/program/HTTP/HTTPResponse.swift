internal import Foundation

/// A response, read to its end.
struct HTTPResponse: Sendable {
    let status: Int
    /// The field Location, as sent.
    let location: String?
    let body: [UInt8]

    /// - Throws: ``BenchFailure`` with the beginning of the body for another status.
    @discardableResult
    func require(_ statuses: Int..., of what: String) throws -> HTTPResponse {
        guard statuses.contains(status) else {
            let text = String(decoding: body.prefix(400), as: UTF8.self)
            throw BenchFailure("\(what) was answered with \(status): \(text)")
        }
        return self
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(body))
    }
}

/// The head of a response, as far as a client needs it to find the end of the body.
struct HTTPResponseHead {
    let status: Int
    let location: String?
    let contentLength: Int

    /// - Throws: ``BenchFailure`` for bytes that are no head of HTTP/1.1 with a length.
    init(_ bytes: ArraySlice<UInt8>) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: true)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
            throw BenchFailure("this is no answer of HTTP: \(text.prefix(80))")
        }
        self.status = status
        var length: Int?
        var location: String?
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            switch line[..<colon].lowercased() {
            case "content-length": length = Int(value)
            case "location": location = String(value)
            default: break
            }
        }
        if status < 200 || status == 204 || status == 304 { length = 0 }
        guard let length else { throw BenchFailure("an answer has no Content-Length: \(text)") }
        contentLength = length
        self.location = location
    }
}
