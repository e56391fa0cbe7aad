import KedgeClient

extension Error {
    /// Whether the error is ``RunInterruption/leaseLost``.
    var isLeaseLost: Bool {
        guard case .leaseLost? = self as? RunInterruption else { return false }
        return true
    }
}
