import Foundation
import KedgeModel
import Testing

struct ErrorDocumentationTests {
    /// The rows between the markers of `docs/PROTOCOL.md`, without the two header rows.
    private func documentedRows() throws -> [String] {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/PROTOCOL.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let begin = try #require(text.range(of: "<!-- errors:begin -->"))
        let end = try #require(text.range(of: "<!-- errors:end -->"))
        return text[begin.upperBound..<end.lowerBound].split(separator: "\n").dropFirst(2)
            .map(String.init)
    }

    @Test func `the documented error table equals the table in the code`() throws {
        let expected = ErrorCode.allCases.map { code in
            let facts = code.facts
            let status = facts.httpStatus.map(String.init) ?? "–"
            return "| `\(code.rawValue)` | \(status) | \(facts.exitStatus) "
                + "| \(facts.isRetryable ? "yes" : "no") | \(facts.sentence) |"
        }
        #expect(try documentedRows() == expected)
    }
}
