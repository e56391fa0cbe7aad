internal import GRDB
internal import KedgeModel

/// Secrets in the URLs of downloads: kept for as long as the download can go on, and no longer.
extension TransferStore {
    /// Lets SQLite overwrite what is deleted, and takes the secrets out of downloads that ended before
    /// records of ended downloads were kept without them.
    static func forgetSecrets(_ queue: DatabaseQueue) throws {
        try queue.writeWithoutTransaction { database in
            _ = try Int.fetchOne(database, sql: "PRAGMA secure_delete = ON")
        }
        try queue.write { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT * FROM download_transfer
                    WHERE state IN ('completed', 'canceled') AND is_url_redacted = 0
                        AND remote_url GLOB '*[?#@]*'
                    """)
            for row in rows {
                var change = RowChange(TransferRow(row, direction: .download), in: database)
                change.forgetSecrets()
                let id = try DownloadTransfer(change.row).status.id
                try change.write(id, at: Timestamp(millisecondsSinceEpoch: 0))
            }
        }
    }
}

extension RowChange {
    /// The download has ended: what its URL had beyond the address is not needed any more.
    mutating func forgetSecrets() {
        guard let url = row.text("remote_url") else { return }
        let plain = URLText.withoutSecrets(url)
        guard plain != url else { return }
        set("remote_url", plain)
        set("is_url_redacted", true)
    }
}
