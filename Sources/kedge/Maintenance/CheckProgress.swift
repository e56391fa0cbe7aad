internal import KedgeEngine

/// Shows a scrub's progress on standard error: a changing line on a terminal, else occasional ones.
struct CheckProgress {
    let tally: CheckTally

    /// Shows the progress until the task is canceled.
    func show() async {
        let isTerminal = StandardError.isTerminal
        let start = ContinuousClock.now
        // Nil when canceled during the wait; the loop then ends.
        while (try? await Task.sleep(for: isTerminal ? .milliseconds(500) : .seconds(10))) != nil {
            let line = Self.line(tally.summary, after: start.duration(to: .now))
            StandardError.write(isTerminal ? "\r\u{1B}[K\(line)" : "\(line)\n")
        }
        if isTerminal { StandardError.write("\r\u{1B}[K") }
    }

    private static func line(_ summary: CheckSummary, after time: Duration) -> String {
        let seconds = max(time / .seconds(1), 0.001)
        let rate = Double(summary.hashedByteCount) / seconds
        return "\(ByteText.size(summary.hashedByteCount))"
            + " of \(ByteText.size(summary.plannedByteCount))  \(ByteText.rate(rate))"
            + "  \(summary.findingCount) findings"
    }
}
