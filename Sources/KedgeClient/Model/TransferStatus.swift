package import KedgeModel

/// The part of a record that uploads and downloads share.
package struct TransferStatus: Sendable, Equatable {
    package let id: TransferID
    /// Base URL of the server, without a trailing slash. For an upload with another protocol than
    /// the native one, the creation URL as it was given.
    package let serverURL: String
    package var state: TransferState
    /// Set exactly while ``state`` is `paused`.
    package var pauseReason: PauseReason?
    /// The error that stopped the transfer or makes it wait; cleared when bytes move again.
    package var lastErrorCode: ErrorCode?
    /// An actionable sentence, safe for strangers.
    package var lastErrorMessage: String?
    /// The try behind that error, if any.
    package var failedAttempt: FailedAttempt?
    /// Status of the server's last answer.
    package var lastServerStatus: Int?
    /// Request id of that answer, if it carried one.
    package var lastRequestID: String?
    /// End offset of the furthest confirmed byte.
    package var lastGoodByteOffset: Int64
    /// Number of times the whole file had another SHA-256 than expected.
    package var integrityFailureCount: Int
    /// Number of bytes that were read again for the hash of the whole file, by the run that
    /// computed it.
    package var readBackByteCount: Int64
    /// How the result was checked; nil until it was.
    package var verification: Verification?
    /// Command for the process that runs this transfer, which acts on it within a second.
    package var command: TransferCommand?
    /// Token of the process that runs the transfer; nil if none does.
    package var ownerToken: String?
    package let createdAt: Timestamp
    package var updatedAt: Timestamp

    /// Creates a transfer in state `queued`.
    package init(id: TransferID, serverURL: String, createdAt: Timestamp) {
        self.id = id
        self.serverURL = serverURL
        self.state = .queued
        self.lastGoodByteOffset = 0
        self.integrityFailureCount = 0
        self.readBackByteCount = 0
        self.createdAt = createdAt
        self.updatedAt = createdAt
    }
}

/// Strength of the proof that a result is correct.
public enum Verification: String, Sendable, Codable {
    /// The whole file has the expected SHA-256.
    case sha256
    /// No hash was known: only length and TLS were checked.
    case unverified
}
