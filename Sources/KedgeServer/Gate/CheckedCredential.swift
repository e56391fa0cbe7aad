/// The result of checking the credential of a request, for the metrics.
struct CheckedCredential: Sendable {
    /// The result; the raw value is a label.
    enum Outcome: String, Sendable {
        case accepted
        case refused
        /// A store or an issuer did not answer.
        case failed
    }

    /// The kind of the principal, or of the credential that was not accepted.
    let kind: String
    let outcome: Outcome
    let duration: Duration
}
