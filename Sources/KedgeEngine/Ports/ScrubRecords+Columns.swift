// The database columns of a blob's scrub state, equal in the schemas of all databases.
extension ScrubResult {
    /// Returns the assignments that record the result, given the names of two parameters.
    package func changes(now: String, next: String) -> String {
        let readToTheEnd = "checked_bytes = 0, due_at = \(next), lease_until = 0"
        return switch self {
        case .right: "verified_at = \(now), damaged_at = NULL, \(readToTheEnd)"
        case .damaged: "damaged_at = coalesce(damaged_at, \(now)), \(readToTheEnd)"
        // The due time stays, so that the backlog shows the delay; the lease defers the next
        // attempt. The terms with zero add nothing: with them, both parameters occur in the
        // statement whatever the result.
        case .undecided: "lease_until = \(next) + 0 * \(now)"
        case .interrupted: "lease_until = 0 * (\(now) + \(next))"
        }
    }
}

extension ScrubTarget {
    /// Row conditions, the most urgent first.
    package static let urgency = [
        "verified_at IS NULL AND damaged_at IS NULL", "damaged_at IS NOT NULL",
        "verified_at IS NOT NULL",
    ]
}
