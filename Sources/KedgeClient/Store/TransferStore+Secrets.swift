internal import GRDB
internal import KedgeModel
internal import KedgeTransport

/// Secrets in the URLs of downloads, kept only while the download can resume.
extension TransferStore {
    /// Makes SQLite overwrite deleted content, and removes the secrets of ended downloads from
    /// older records.
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
    /// Removes the secrets of an ended download's URL.
    mutating func forgetSecrets() {
        guard let url = row.text(.remoteURL) else { return }
        let plain = URLText.withoutSecrets(url)
        guard plain != url else { return }
        set(.remoteURL, plain)
        set(.isURLRedacted, true)
    }
}
