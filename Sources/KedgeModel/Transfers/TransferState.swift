/// Where a transfer stands; one state machine for uploads and downloads (R3, R34).
public enum TransferState: String, CaseIterable, Sendable, Codable {
    /// Waiting: for a worker, for the network, or for its time to try again. Not a failure (R104).
    case queued
    /// Bytes of an upload are moving.
    case uploading
    /// Bytes of a download are moving.
    case downloading
    /// Stopped by a person or by a constraint; the reason stands beside it.
    case paused
    /// Stopped by an error that trying again by itself would not cure.
    case failed
    /// Done: verified, and for a download promoted to its destination.
    case completed
    /// Given up by a person; the record stays, the partial bytes go.
    case canceled

    /// True when nothing but an explicit retry can follow.
    public var isFinal: Bool { self == .completed || self == .canceled || self == .failed }
}

/// Which way the bytes go.
public enum TransferDirection: String, Sendable, Codable {
    /// From a local file to a server.
    case upload
    /// From a server to a local file.
    case download

    /// The state of a transfer of this direction while a worker runs it.
    public var runningState: TransferState { self == .upload ? .uploading : .downloading }
}

/// Why a transfer is paused (R106).
public enum PauseReason: String, Sendable, Codable {
    /// Somebody asked for it.
    case user
    /// The process that ran it is ending; the next one goes on.
    case shutdown
    /// A constraint of the host is not met, for example an unmetered network.
    case constraint
}

/// Something that happens to a transfer.
public enum TransferEvent: Hashable, Sendable {
    /// A worker takes it up.
    case start
    /// The worker cannot go on now but will by itself: offline, backing off, process ending.
    case wait
    /// A person, a stopping process or a constraint holds it; a paused one stays paused.
    case pause(PauseReason)
    /// The hold is lifted. A waiting or running transfer just goes on.
    case resume
    /// An error that waiting would not cure, or one try too many.
    case fail
    /// Everything arrived and was verified.
    case complete
    /// A person gives it up; allowed in every state but `completed`.
    case cancel
    /// Somebody asks a failed, canceled or paused transfer to run again.
    case retry
    /// A completed download lost its ground, for example the file at its destination was removed.
    case restart
}

/// An event that the state does not allow.
public struct IllegalTransition: Error, Hashable, Sendable {
    /// Where the transfer stood, and still stands.
    public let state: TransferState
    /// What was refused.
    public let event: TransferEvent
}

extension TransferState {
    /// The state after an event, as a pure function.
    ///
    /// - Throws: ``IllegalTransition`` when the event has no meaning in this state.
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
