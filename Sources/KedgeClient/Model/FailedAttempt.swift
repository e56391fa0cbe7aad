public import KedgeModel
public import KedgeTransport

/// The last failed try, and the time of the next one.
public struct FailedAttempt: Hashable, Sendable {
    /// Why no answer came; nil if one came or the cause is unknown.
    public let cause: ConnectionCause?
    /// Host of the request, where known.
    public let host: String?
    /// Port of the request, where known.
    public let port: Int?
    /// Number of tries in a row without progress, including this one.
    public let attempt: Int
    /// Time of the next automatic try; nil for none.
    public let nextAttemptAt: Timestamp?
}
