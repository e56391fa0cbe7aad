internal import KedgeModel

/// Output of `--dry-run`.
enum FolderPlan {
    private struct Line: Encodable {
        var version = 1
        var type = "plan"
        var path: String
        var size: Int64?
    }

    /// Returns the line of one file.
    static func line(_ path: String, _ byteCount: Int64?, asJSON: Bool) -> String {
        guard !asJSON else { return JSONLine.encode(Line(path: path, size: byteCount)) }
        let size = byteCount.map { ByteText.size($0) } ?? "?"
        let padding = String(repeating: " ", count: max(0, 10 - size.count))
        return "\(padding)\(size)  \(printable(path))\n"
    }

    /// Returns the closing line.
    static func sum(_ byteCounts: [Int64?]) -> String {
        let total = byteCounts.reduce(Int64(0)) { sum, next in
            let (total, overflow) = sum.addingReportingOverflow(next ?? 0)
            return overflow ? .max : total
        }
        let noun = byteCounts.count == 1 ? "file" : "files"
        return "\(byteCounts.count) \(noun), \(ByteText.size(total)); nothing was transferred.\n"
    }
}
