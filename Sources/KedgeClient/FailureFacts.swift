internal import KedgeModel

/// The facts of an error that a transfer's record keeps.
struct FailureFacts {
    let code: ErrorCode
    var message: String
    var answer: ServerAnswer?
    var attempt: FailedAttempt?
    /// Whether a link was refused, which no token cures.
    var isByLink = false

    /// Reads an error that has ended a run.
    init(_ error: any Error) {
        switch error {
        case let error as TransferError:
            code = error.code
            message = error.explanation ?? error.code.facts.sentence
            answer = (error.cause as? RequestFailure)?.answer
        case let error as RequestFailure:
            code = error.code
            message = error.message
            answer = error.answer
            attempt = error.failedAttempt()
            isByLink = error.isByLink
        case RunInterruption.sourceChanged:
            code = .fileChanged
            message = "The file changed during the upload."
        default:
            code = .internalError
            message = "An unexpected error occurred; it was logged."
        }
    }
}
