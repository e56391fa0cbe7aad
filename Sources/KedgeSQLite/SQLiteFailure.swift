internal import GRDB
internal import KedgeEngine

/// Interprets SQLite's result codes (sqlite.org/rescode.html).
enum SQLiteFailure {
    /// Whether the content of the disk is unknown now.
    ///
    /// After a failed write or sync the kernel may have marked pages clean that never reached the
    /// disk, and a retry would succeed wrongly. A damaged database must not be written to. A full
    /// disk is not fatal: SQLite rolls back and the database stays intact.
    static func isFatal(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: return true
        case .SQLITE_IOERR: return !harmlessIOErrors.contains(error.extendedResultCode.rawValue)
        default: return false
        }
    }

    /// I/O errors that occur before anything is written.
    private static let harmlessIOErrors: Set<Int32> = Set(
        [
            ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_NOMEM,
            .SQLITE_IOERR_LOCK, .SQLITE_IOERR_RDLOCK, .SQLITE_IOERR_UNLOCK,
            .SQLITE_IOERR_BLOCKED, .SQLITE_IOERR_CHECKRESERVEDLOCK, .SQLITE_IOERR_ACCESS,
        ].map(\.rawValue))
}

extension MetadataError {
    /// Translates any error of an operation. The text is for logs: it contains SQL, but no values.
    init(_ error: any Error) {
        if let error = error as? MetadataError {
            self = error
            return
        }
        guard let error = error as? DatabaseError else {
            self = .failed("\(error)")
            return
        }
        let text = "SQLite \(error.extendedResultCode.rawValue): \(error)"
        switch error.resultCode {
        case .SQLITE_FULL: self = .full(text)
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL, .SQLITE_NOMEM, .SQLITE_INTERRUPT,
            .SQLITE_CANTOPEN, .SQLITE_READONLY:
            self = .unavailable(text)
        default: self = .failed(text)
        }
    }
}
