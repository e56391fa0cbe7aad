internal import KedgeLocks

/// Counts the work of a check and forwards its findings. A progress display can read it at any
/// time.
package final class CheckTally: Sendable {
    private let current = Mutex(CheckSummary())
    private let forward: @Sendable (CheckFinding) -> Void

    /// - Parameter forward: Receives each finding at once, one at a time.
    package init(_ forward: @escaping @Sendable (CheckFinding) -> Void) { self.forward = forward }

    /// The counters so far.
    package var summary: CheckSummary { current.withLock { $0 } }

    func count(_ change: (inout CheckSummary) -> Void) { current.withLock { change(&$0) } }

    /// Counts a finding and forwards it.
    package func report(_ finding: CheckFinding) {
        count { summary in
            if finding.isNotice {
                summary.noticeCount += 1
            } else {
                summary.findingCount += 1
                if finding.isRepaired { summary.repairedCount += 1 }
            }
        }
        forward(finding)
    }
}
