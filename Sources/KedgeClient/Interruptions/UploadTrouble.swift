internal import KedgeModel

/// The upload at the server cannot continue as it is; the transfer can.
struct UploadTrouble: Error {
    enum Remedy: Equatable {
        /// Request the server's state.
        case reconcile
        /// Create a new session or upload. A new session may adopt the chunks of an expired one.
        case newUpload(adopt: SessionID?)
        /// The server has other bytes than the client read: create a new session or upload, and
        /// discard all computed hashes. Done once.
        case fromScratch
    }

    /// Codes with which a server reports that a session or upload no longer exists.
    static let goneCodes: Set<ErrorCode> = [.sessionNotFound, .sessionExpired]

    let remedy: Remedy
    /// Failure to report if recovery does not succeed.
    let failure: RequestFailure

    /// Error to report when the server has received other bytes again after a start from scratch.
    var repeatedMismatch: TransferError {
        TransferError(
            .integrityMismatch, operation: failure.operation,
            explanation: "The server received bytes that differ from this file, twice.",
            cause: failure)
    }
}
