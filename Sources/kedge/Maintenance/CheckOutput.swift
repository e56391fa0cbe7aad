internal import KedgeEngine

/// Findings and summary of a check on standard output.
struct CheckOutput {
    let isJSON: Bool

    func write(_ finding: CheckFinding) {
        StandardOutput.offer(
            isJSON ? JSONLine.encode(FindingLine(finding)) : Self.text(finding) + "\n")
    }

    func write(_ summary: CheckSummary) {
        StandardOutput.offer(
            isJSON ? JSONLine.encode(SummaryLine(summary)) : Self.text(summary) + "\n")
    }

    private static func text(_ finding: CheckFinding) -> String {
        let chunks = finding.chunks.prefix(20).map { range in
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
        }
        let more = finding.chunks.count > chunks.count ? ", …" : ""
        let list =
            chunks.isEmpty ? "" : " [chunks \(chunks.joined(separator: ", "))\(more)]"
        let repair = finding.isRepaired ? "  repaired" : ""
        return "\(finding.kind.rawValue)  \(printable(finding.id))  \(printable(finding.detail))"
            + list + repair
    }

    private static func text(_ summary: CheckSummary) -> String {
        let hashed =
            summary.hashedByteCount > 0
            ? ", \(ByteText.size(summary.hashedByteCount)) hashed" : ""
        let repaired = summary.repairedCount > 0 ? ", \(summary.repairedCount) repaired" : ""
        return "\(summary.sessionCount) sessions, \(summary.fileCount) files, "
            + "\(summary.blobCount + summary.stagingCount) blobs and staging areas\(hashed): "
            + "\(summary.findingCount) findings\(repaired), \(summary.noticeCount) notices"
    }
}

private struct FindingLine: Encodable {
    var version = 1
    var type = "finding"
    var kind: String
    var id: String
    var detail: String
    /// First and last index of each run.
    var chunks: [[Int]]
    var notice: Bool
    var repaired: Bool

    init(_ finding: CheckFinding) {
        kind = finding.kind.rawValue
        id = finding.id
        detail = finding.detail
        chunks = finding.chunks.map { [$0.lowerBound, $0.upperBound] }
        notice = finding.isNotice
        repaired = finding.isRepaired
    }
}

private struct SummaryLine: Encodable {
    var version = 1
    var type = "summary"
    var sessions: Int
    var files: Int
    var blobs: Int
    var stagingFiles: Int
    var hashedBytes: Int64
    var findings: Int
    var repairs: Int
    var notices: Int
    var clean: Bool

    init(_ summary: CheckSummary) {
        sessions = summary.sessionCount
        files = summary.fileCount
        blobs = summary.blobCount
        stagingFiles = summary.stagingCount
        hashedBytes = summary.hashedByteCount
        findings = summary.findingCount
        repairs = summary.repairedCount
        notices = summary.noticeCount
        clean = summary.isClean
    }
}
