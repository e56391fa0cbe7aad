internal import GRDB
internal import KedgeEngine

/// What SQLite's result codes (sqlite.org/rescode.html) mean for the store.
enum SQLiteFailure {
    /// True when nobody can say any more what the disk holds.
    ///
    /// After a failed write or sync the kernel may have marked pages clean that never reached the
    /// disk: trying again would succeed and be a lie. A damaged database must not be written to.
    /// A full disk is not among them: SQLite rolls back and the database is whole.
    static func isFatal(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: return true
        case .SQLITE_IOERR: return !harmlessIOErrors.contains(error.extendedResultCode.rawValue)
        default: return false
        }
    }

    /// I/O errors that happen before anything is written.
    private static let harmlessIOErrors: Set<Int32> = Set(
        [
            ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_NOMEM,
            .SQLITE_IOERR_LOCK, .SQLITE_IOERR_RDLOCK, .SQLITE_IOERR_UNLOCK,
            .SQLITE_IOERR_BLOCKED, .SQLITE_IOERR_CHECKRESERVEDLOCK, .SQLITE_IOERR_ACCESS,
        ].map(\.rawValue))
}

extension MetadataError {
    /// Translates whatever an operation threw. The text is for logs: it names SQL, but no values.
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
