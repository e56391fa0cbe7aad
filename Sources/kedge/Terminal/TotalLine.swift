internal import KedgeClient
internal import KedgeModel

/// The sum over all files of a command.
struct TotalLine {
    /// Number of files that the command names.
    var fileCount: Int
    /// Size of all of them; nil while one is unknown.
    var totalByteCount: Int64?
    /// Files that have ended: completed, and failed or refused.
    var completedCount = 0
    var failedCount = 0
    /// Files that were there already.
    var presentCount = 0
    /// Size of the files that have ended.
    var endedByteCount: Int64 = 0
    /// Size of the files that have completed.
    var completedByteCount: Int64 = 0

    /// Returns the line while files move.
    ///
    /// - Parameter moving: Snapshots of files that have begun and not ended.
    func text(_ moving: [TransferSnapshot], isWarm: Bool, cells: Int) -> String {
        let byteCount = endedByteCount + moving.reduce(0) { $0 + $1.bytesTransferred }
        let rate = moving.reduce(0) { $0 + ($1.bytesPerSecond ?? 0) }
        var parts = ["\(completedCount + failedCount + presentCount)/\(fileCount) files"]
        if let total = totalByteCount, total > 0 {
            parts.append(TransferBar.percentage(byteCount, of: total))
        } else {
            parts.append(ByteText.size(byteCount))
        }
        if rate > 0 {
            parts.append(ByteText.rate(rate))
            if isWarm, let total = totalByteCount {
                // Capped: sizes may come from the server and exceed the range of a duration.
                let seconds = min(Double(max(0, total - byteCount)) / rate, 1e9)
                parts.append("ETA " + ByteText.time(.seconds(seconds)))
            }
        }
        if failedCount > 0 { parts.append("\(failedCount) failed") }
        return TerminalText.prefix(parts.joined(separator: ", "), cells: cells)
    }

    /// Returns the line after the last file.
    func sum(after time: Duration) -> String {
        let failed = failedCount > 0 ? ", \(failedCount) failed" : ""
        let open = fileCount - completedCount - failedCount - presentCount
        let present = presentCount > 0 ? ", \(presentCount) already there" : ""
        let unfinished = open > 0 ? ", \(open) unfinished" : ""
        let noun = fileCount == 1 ? "file" : "files"
        return "\(fileCount) \(noun): \(completedCount) done\(present)\(failed)\(unfinished);"
            + " \(ByteText.size(completedByteCount)) in \(ByteText.time(time))"
    }
}
