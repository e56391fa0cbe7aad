public import KedgeModel

/// The try that failed last, and when the next one is.
public struct FailedAttempt: Hashable, Sendable {
    /// Why no answer came; nil when one came, or nothing is known.
    public let cause: ConnectionCause?
    /// Host that was asked, where it is known.
    public let host: String?
    /// Port that was asked, where it is known.
    public let port: Int?
    /// Tries in a row that brought nothing, this one included.
    public let attempt: Int
    /// When it is tried again by itself; nil when it is not.
    public let nextAttemptAt: Timestamp?
}
