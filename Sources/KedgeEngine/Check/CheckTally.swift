internal import KedgeLocks

/// Counts what a check does, and hands on what it finds. Whoever shows progress reads it meanwhile.
package final class CheckTally: Sendable {
    private let current = Mutex(CheckSummary())
    private let tell: @Sendable (CheckFinding) -> Void

    /// - Parameter tell: Called with each finding as it is made, one at a time.
    package init(_ tell: @escaping @Sendable (CheckFinding) -> Void) { self.tell = tell }

    /// What was done so far.
    package var summary: CheckSummary { current.withLock { $0 } }

    func count(_ change: (inout CheckSummary) -> Void) { current.withLock { change(&$0) } }

    /// Counts a finding and hands it on.
    package func report(_ finding: CheckFinding) {
        count { summary in
            if finding.isNotice {
                summary.noticeCount += 1
            } else {
                summary.findingCount += 1
                if finding.isRepaired { summary.repairedCount += 1 }
            }
        }
        tell(finding)
    }
}
