import KedgeLocks
import KedgeTesting

/// A small origin that serves ranges, not always correctly. Each connection has a thread.
final class RangeServer: Sendable {
    struct Answer: Sendable {
        var status: Int
        var fields: [String: String] = [:]
        var body: [UInt8] = []
    }

    private let server: ScriptedServer
    /// The ranges of GET requests, in order.
    private let asked = Mutex<[Range<Int>]>([])

    var port: UInt16 { server.port }
    var url: String { server.url("/file.bin") }
    var ranges: [Range<Int>] { asked.withLock { $0 } }

    /// - Parameter answer: Makes the answer from the request and the number of ranges requested so
    ///   far.
    init(_ answer: @escaping @Sendable (HTTPMessage, Int) -> Answer) throws {
        server = try ScriptedServer()
        server.start { [weak self] connection in
            while let head = connection.readHead() {
                let number = self?.note(head.method == "GET" ? head.range : nil) ?? 0
                let hasBody = head.method != "HEAD"
                let answer = answer(head, number)
                guard Self.send(answer, withBody: hasBody, to: connection) else { break }
            }
        }
    }

    private func note(_ range: Range<Int>?) -> Int {
        asked.withLock { asked in
            if let range { asked.append(range) }
            return asked.count
        }
    }

    private static func send(
        _ answer: Answer, withBody: Bool, to connection: LoopbackConnection
    ) -> Bool {
        var fields = answer.fields
        fields["Content-Length"] = fields["Content-Length"] ?? "\(answer.body.count)"
        let head =
            "HTTP/1.1 \(answer.status) Answer\r\n"
            + fields.map { "\($0.key): \($0.value)\r\n" }.joined() + "\r\n"
        return connection.send(head) && (!withBody || connection.send(answer.body))
    }
}

extension RangeServer.Answer {
    /// The answer of an honest origin with one version of a file.
    static func honest(_ content: [UInt8], etag: String, _ head: HTTPMessage) -> Self {
        let common = ["ETag": etag, "Accept-Ranges": "bytes"]
        if let wanted = head["if-match"], wanted != etag {
            return Self(status: 412, fields: common)
        }
        guard let range = head.range, range.upperBound <= content.count,
            head["if-range"].map({ $0 == etag }) ?? true
        else { return Self(status: 200, fields: common, body: content) }
        return .part(range, of: content, etag: etag)
    }

    static func part(_ range: Range<Int>, of content: [UInt8], etag: String) -> Self {
        let (first, last) = (range.lowerBound, range.upperBound - 1)
        return Self(
            status: 206,
            fields: [
                "ETag": etag, "Accept-Ranges": "bytes",
                "Content-Range": "bytes \(first)-\(last)/\(content.count)",
            ], body: Array(content[range]))
    }
}
