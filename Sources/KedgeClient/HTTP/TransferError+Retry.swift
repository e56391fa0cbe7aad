extension TransferError {
    /// Whether a retry can succeed without any other change. Depends on the underlying request
    /// failure too. Local failures are not retryable.
    public var isRetryable: Bool { (cause as? RequestFailure)?.isRetryable ?? false }
}
