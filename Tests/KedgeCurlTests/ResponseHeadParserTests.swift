import HTTPTypes
import KedgeCurl
import Testing

struct ResponseHeadParserTests {
    private func feed(_ lines: [String], limit: Int = 1000) -> ResponseHeadParser.Event {
        var parser = ResponseHeadParser(maxByteCount: limit)
        var event = ResponseHeadParser.Event.incomplete
        for line in lines { event = parser.consume(Array("\(line)\r\n".utf8)) }
        return event
    }

    @Test func `interim response heads are skipped`() {
        let lines = ["HTTP/1.1 103 Early", "Link: a", "", "HTTP/1.1 207 Odd One", "X-B: c", ""]
        guard case .complete(let head) = feed(lines) else {
            Issue.record("no head")
            return
        }
        #expect(head.status.code == 207)
        #expect(head.status.reasonPhrase == "Odd One")
        #expect(head.headerFields.map(\.name.canonicalName) == ["x-b"])
    }

    @Test func `trailers after the response head are ignored`() {
        guard case .incomplete = feed(["HTTP/1.1 200 OK", "", "X-Trailer: a"]) else {
            Issue.record("a trailer was taken for something else")
            return
        }
    }

    @Test func `endless interim response heads reach the limit`() {
        let lines = [[String]](repeating: ["HTTP/1.1 100 Continue", ""], count: 50).flatMap { $0 }
        guard case .tooLarge = feed(lines) else {
            Issue.record("no limit")
            return
        }
    }

    @Test(arguments: ["", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 099 Low", "ICY 200 OK"])
    func `a malformed status line is refused`(_ line: String) {
        guard case .malformed = feed([line]) else {
            Issue.record("accepted")
            return
        }
    }
}
