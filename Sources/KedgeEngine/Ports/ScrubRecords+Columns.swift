// How the state of a blob is written in a row of a database; the schema of each has the same columns.
extension ScrubVerdict {
    /// The assignments that record the verdict, with the names of two parameters.
    package func changes(now: String, next: String) -> String {
        switch self {
        case .right:
            "verified_at = \(now), damaged_at = NULL, checked_bytes = 0, due_at = \(next), lease_until = 0"
        case .damaged:
            "damaged_at = coalesce(damaged_at, \(now)), checked_bytes = 0, due_at = \(next), lease_until = 0"
        // When it was due stays, so that the lag is told; nobody takes it before the time.
        case .undecided: "lease_until = \(next) + 0 * \(now)"
        case .interrupted: "lease_until = 0 * (\(now) + \(next))"
        }
    }
}

extension ScrubTarget {
    /// Conditions on a row, the most urgent first.
    package static let urgency = [
        "verified_at IS NULL AND damaged_at IS NULL", "damaged_at IS NOT NULL",
        "verified_at IS NOT NULL",
    ]
}
