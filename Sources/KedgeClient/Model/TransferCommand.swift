internal import KedgeModel

/// A command of the user for a transfer, in whichever process it runs.
package enum TransferCommand: String, Sendable {
    case pause
    /// Withdraws a command that waits for the process running the transfer.
    case resume
    case cancel
    /// Tries again now, without waiting for the back-off to end, and keeps the transferred bytes.
    case retry
    /// Discards the transferred bytes and starts over with a new session or temporary file.
    case restart

    /// The event that must be legal in the running state; nil if every running transfer allows it.
    var event: TransferEvent? {
        switch self {
        case .pause: .pause(.user)
        case .resume: .resume
        case .cancel: .cancel
        case .retry, .restart: nil
        }
    }
}
