internal import KedgeEngine

/// Tells a person on standard error how far a scrub is: one line that changes on a terminal, else a
/// line now and then.
struct CheckProgress {
    let tally: CheckTally

    /// Shows it until the task is cancelled.
    func show() async {
        let isTerminal = StandardError.isTerminal
        let start = ContinuousClock.now
        // Cancelled while waiting: the loop ends.
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
