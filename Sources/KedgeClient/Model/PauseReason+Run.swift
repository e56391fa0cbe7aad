internal import KedgeModel

extension PauseReason {
    /// Whether the next run ends the pause. The user ends other pauses.
    var endsWithNextRun: Bool {
        switch self {
        case .shutdown, .signInNeeded: true
        case .user, .constraint: false
        }
    }
}
