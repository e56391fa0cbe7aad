internal import Foundation
internal import KedgeFiles
internal import KedgeModel

/// The role of a local file or folder, as an error names it.
enum LocalFileRole: String, Sendable {
    /// The file that an upload reads.
    case source = "file to upload"
    /// The folder of the destination, with the temporary file.
    case downloadFolder = "download's folder"
    case destination
    case transferRecords = "transfer records"
    case fileSystem = "file system"
    /// A file that is checked or compared outside any transfer.
    case inspectedFile = "file"
}

extension TransferError {
    /// Translates a failed operation on a local file into an error of the transfer.
    ///
    /// - Parameter role: The file's role in the transfer, which the explanation names.
    init(_ error: FileError, operation: String, role: LocalFileRole) {
        let code: ErrorCode
        let explanation: String
        switch error.code {
        case .noSpace:
            code = .diskFull
            explanation = "The local disk is full."
        case .notFound where role == .downloadFolder:
            code = .usage
            explanation = "The folder of the destination does not exist; create it first."
        case .other where error.number == ENOTDIR:
            code = .usage
            explanation = "A part of the path of the \(role.rawValue) is a file, not a folder."
        case .notFound where role == .inspectedFile:
            code = .fileMissing
            explanation = "There is no such file."
        case .notFound:
            code = .fileMissing
            explanation = "The \(role.rawValue) is missing; it was moved or deleted."
        case .exists:
            code = .destinationExists
            explanation = "The destination exists."
        case .permission:
            code = .usage
            explanation = "No permission to read or write the \(role.rawValue)."
        case .readOnly:
            // File systems also become read-only when their device reports an error.
            code = .usage
            explanation = "The disk of the \(role.rawValue) is read-only."
        case .tooManyOpen, .locked, .io, .other:
            code = .storeDamaged
            explanation = "The disk reported an error on the \(role.rawValue)."
        }
        self.init(
            code, operation: operation, resource: error.path, explanation: explanation, cause: error
        )
    }
}

extension TransferError {
    /// Translates a `FileError`; any other error is returned unchanged.
    static func reading(_ error: any Error, operation: String, role: LocalFileRole) -> any Error {
        guard let error = error as? FileError else { return error }
        return TransferError(error, operation: operation, role: role)
    }
}
