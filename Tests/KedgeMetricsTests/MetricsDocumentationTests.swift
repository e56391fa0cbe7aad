import Foundation
import KedgeMetrics
import Testing

struct MetricsDocumentationTests {
    /// The text between the markers of `docs/METRICS.md`.
    private func documentedTables() throws -> String {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/METRICS.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let begin = try #require(text.range(of: "<!-- metrics:begin -->\n"))
        let end = try #require(text.range(of: "<!-- metrics:end -->"))
        return String(text[begin.upperBound..<end.lowerBound])
    }

    @Test func `the documented tables equal those that the code generates`() throws {
        #expect(try documentedTables() == MetricName.markdown)
    }
}
