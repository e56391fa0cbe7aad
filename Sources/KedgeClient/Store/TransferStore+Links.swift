internal import GRDB
internal import KedgeModel

/// Uploads by a link of the service.
extension TransferStore {
    /// Gives an unfinished upload the link of a repeated command.
    ///
    /// The session stays if its own link works. If the service has refused it, the new link begins
    /// another session: it does not permit to continue the old one.
    ///
    /// - Throws: `USAGE` if the upload has a session that was begun without a link.
    static func adopt(
        _ link: String, into row: TransferRow, at now: Timestamp, in database: Database
    ) throws -> TransferRow {
        let existing = try UploadTransfer(row)
        guard existing.link != link else { return row }
        let hasSession = existing.sessionID != nil || existing.uploadURL != nil
        guard existing.link != nil || !hasSession else {
            throw TransferError(
                .usage, operation: "upload", resource: existing.status.id.text,
                explanation: "Transfer \(existing.status.id.text) uploads this file without a link;"
                    + " finish or cancel it first.")
        }
        var change = RowChange(row, in: database)
        change.set(.link, link)
        if existing.status.state == .failed,
            existing.status.lastErrorCode.map({ linkRefusals.contains($0) }) == true
        {
            try restart(&change)
        }
        try change.write(existing.status.id, at: now)
        return try TransferRow.find(existing.status.id, in: database)
    }

    /// Codes of refusals that another link may cure.
    private static let linkRefusals: Set<ErrorCode> = [
        .linkInvalid, .linkExpired, .forbidden, .unauthenticated,
    ]
}
