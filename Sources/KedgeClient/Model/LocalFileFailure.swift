internal import Foundation
internal import KedgeFiles
internal import KedgeModel

extension TransferError {
    /// Translates a failed operation on a local file into an error of the transfer.
    ///
    /// - Parameter role: The file's role for the reader, for example `file to upload`.
    init(_ error: FileError, operation: String, role: String) {
        let code: ErrorCode
        let explanation: String
        switch error.code {
        case .noSpace:
            code = .diskFull
            explanation = "The local disk is full."
        case .notFound where role == "download's folder":
            code = .usage
            explanation = "The folder of the destination does not exist; create it first."
        case .other where error.number == ENOTDIR:
            code = .usage
            explanation = "A part of the path of the \(role) is a file, not a folder."
        case .notFound:
            code = .fileMissing
            explanation = "The \(role) is missing; it was moved or deleted."
        case .exists:
            code = .destinationExists
            explanation = "The destination exists."
        case .permission:
            code = .usage
            explanation = "No permission to read or write the \(role)."
        case .readOnly:
            // File systems also become read-only when their device reports an error.
            code = .usage
            explanation = "The disk of the \(role) is read-only."
        case .tooManyOpen, .locked, .io, .other:
            code = .storeDamaged
            explanation = "The disk reported an error on the \(role)."
        }
        self.init(
            code, operation: operation, resource: error.path, explanation: explanation, cause: error
        )
    }
}

extension TransferError {
    /// Translates a `FileError`; any other error is returned unchanged.
    static func reading(_ error: any Error, operation: String, role: String) -> any Error {
        guard let error = error as? FileError else { return error }
        return TransferError(error, operation: operation, role: role)
    }
}
