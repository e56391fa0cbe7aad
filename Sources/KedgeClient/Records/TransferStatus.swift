package import KedgeModel

/// The part of a record that uploads and downloads share.
package struct TransferStatus: Sendable, Equatable {
    package let id: TransferID
    /// Base URL of the server, without a trailing slash; for an upload in another dialect than the native
    /// one the URL at which it was begun, as it was given.
    package let serverURL: String
    package var state: TransferState
    /// Set exactly while ``state`` is `paused` (R106).
    package var pauseReason: PauseReason?
    /// What stopped the transfer, or what it waits for; cleared when bytes move again (R35).
    package var lastErrorCode: ErrorCode?
    /// An actionable sentence, safe for strangers (R107).
    package var lastErrorMessage: String?
    /// The try behind that error, where there was one.
    package var failedAttempt: FailedAttempt?
    /// Status of the last answer of the server, whatever it was (R141).
    package var lastServerStatus: Int?
    /// Request id of that answer, when it carried one.
    package var lastRequestID: String?
    /// End of the furthest byte that was confirmed, in bytes (R140).
    package var lastGoodByteOffset: Int64
    /// How often the whole file had another SHA-256 than expected (R110).
    package var integrityFailureCount: Int
    /// How the result was checked, once it was.
    package var verification: Verification?
    /// What another process wants from the one that runs this transfer.
    package var control: ControlCommand
    /// Token of the process that runs the transfer, nil when none does.
    package var ownerToken: String?
    package let createdAt: Timestamp
    package var updatedAt: Timestamp

    /// A new transfer, waiting to be run.
    package init(id: TransferID, serverURL: String, createdAt: Timestamp) {
        self.id = id
        self.serverURL = serverURL
        self.state = .queued
        self.lastGoodByteOffset = 0
        self.integrityFailureCount = 0
        self.control = .none
        self.createdAt = createdAt
        self.updatedAt = createdAt
    }
}

/// How sure a result is.
public enum Verification: String, Sendable, Codable {
    /// The SHA-256 of the whole file is the one the other side announced.
    case sha256
    /// No hash was known to compare with: length and TLS only (R88).
    case unverified
}

/// A wish of one process that the process running the transfer carries out within a second.
package enum ControlCommand: String, Sendable, Codable {
    case none
    case pause
    case cancel
    /// Try again now, without waiting for the back-off to end.
    case retry
    /// Throw away what was transferred and begin anew.
    case restart
}
