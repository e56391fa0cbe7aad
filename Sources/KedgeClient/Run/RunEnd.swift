/// The end of one round of a run, reported by its worker or by the watcher of its lease.
package enum RunEnd: Sendable {
    /// The worker completed the transfer.
    case completed
    /// The worker failed, or was canceled.
    case failed(any Error)
    /// Another process, or this one, left a command.
    case command(TransferCommand)
    /// This client suspends all its runs.
    case suspended
    /// The lease was lost, or the store failed.
    case lost(any Error)

    /// Returns the end that counts: a completed transfer needs no command, and a worker that the
    /// watcher stopped fails for that reason.
    package func combined(with later: RunEnd) -> RunEnd { later.rank >= rank ? later : self }

    private var rank: Int {
        switch self {
        case .failed: 0
        case .command, .suspended, .lost: 1
        case .completed: 2
        }
    }
}
