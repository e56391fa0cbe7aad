/// The state of a transfer; one state machine for uploads and downloads.
public enum TransferState: String, CaseIterable, Sendable, Codable {
    /// Waiting for a worker, for the network or for the next retry. Not a failure.
    case queued
    /// Bytes of an upload are moving.
    case uploading
    /// Bytes of a download are moving.
    case downloading
    /// Stopped by the user, a stopping process or a constraint; the reason is stored with it.
    case paused
    /// Stopped by an error that an automatic retry would not fix.
    case failed
    /// Done and verified; a download is also promoted to its destination.
    case completed
    /// Canceled by the user; the record stays, the partial bytes are discarded.
    case canceled

    /// True when the transfer does not run again without an explicit retry or restart.
    public var isFinal: Bool { self == .completed || self == .canceled || self == .failed }
}

/// The direction of a transfer.
public enum TransferDirection: String, Sendable, Codable {
    /// From a local file to a server.
    case upload
    /// From a server to a local file.
    case download

    /// The state of a running transfer of this direction.
    public var runningState: TransferState { self == .upload ? .uploading : .downloading }
}

/// The reason that a transfer is paused.
public enum PauseReason: String, Sendable, Codable {
    /// The user asked for it.
    case user
    /// The process that ran it is stopping; the next process resumes it.
    case shutdown
    /// A constraint is not met, for example an unmetered network.
    case constraint
    /// The server requires a token, or refuses the one it got. Progress is kept: with another
    /// token, the next run resumes it.
    case signInNeeded
}

/// An event in the life of a transfer.
public enum TransferEvent: Hashable, Sendable {
    /// A worker starts the transfer.
    case start
    /// The worker cannot continue now but will later: offline, backing off, or process stopping.
    case wait
    /// The user, a stopping process or a constraint pauses it; no effect on a paused transfer.
    case pause(PauseReason)
    /// The pause ends. No effect on a waiting or running transfer.
    case resume
    /// An error that waiting would not fix, or too many attempts.
    case fail
    /// All bytes arrived and were verified.
    case complete
    /// The user cancels it; allowed in every state but `completed`.
    case cancel
    /// The user runs a failed, canceled or paused transfer again.
    case retry
    /// The transfer starts over, for example because a downloaded file was removed.
    case restart
}

/// An event that the state does not allow.
public struct IllegalTransition: Error, Hashable, Sendable {
    /// The state, which does not change.
    public let state: TransferState
    /// The refused event.
    public let event: TransferEvent
}

extension TransferState {
    /// Returns the state after an event; a pure function.
    ///
    /// - Throws: ``IllegalTransition`` when the state does not allow the event.
    public func applying(
        _ event: TransferEvent, direction: TransferDirection
    ) throws(IllegalTransition) -> TransferState {
        switch (self, event) {
        case (.queued, .start): direction.runningState
        case (.queued, .wait), (.uploading, .wait), (.downloading, .wait): .queued
        case (.queued, .pause), (.uploading, .pause), (.downloading, .pause), (.paused, .pause):
            .paused
        case (.paused, .resume), (.queued, .resume): .queued
        case (.uploading, .resume), (.downloading, .resume): self
        case (.queued, .fail), (.uploading, .fail), (.downloading, .fail), (.paused, .fail): .failed
        case (.uploading, .complete), (.downloading, .complete): .completed
        case (.queued, .cancel), (.uploading, .cancel), (.downloading, .cancel),
            (.paused, .cancel), (.failed, .cancel), (.canceled, .cancel):
            .canceled
        case (.failed, .retry), (.canceled, .retry), (.paused, .retry), (.queued, .retry): .queued
        case (.completed, .restart), (.failed, .restart), (.canceled, .restart),
            (.paused, .restart), (.queued, .restart):
            .queued
        default:
            throw IllegalTransition(state: self, event: event)
        }
    }
}
