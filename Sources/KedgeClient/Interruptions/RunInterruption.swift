/// The reason for the end of a run, other than a failed request or a local failure.
/// ``TransferClient`` decides what follows.
package enum RunInterruption: Error {
    /// The transfer has another owner now: the run must stop without changing its record.
    case leaseLost
    /// The server could not be reached within the host application's timeout. The transfer stays
    /// `queued`; it has not failed. The failure is that of the last try.
    case serverTimeout(RequestFailure, timeout: Duration)
    /// The file to upload is not the recorded one. Its current identity is nil if the change was
    /// noticed during a read.
    case sourceChanged(SourceIdentity?)
}
