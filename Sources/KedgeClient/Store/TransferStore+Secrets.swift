internal import GRDB
internal import KedgeModel
internal import KedgeTransport

/// Secrets in the URLs of downloads and links of uploads, kept only while the transfer can resume.
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
    /// Removes the links of an ended upload, or the secrets of an ended download's URL.
    mutating func forgetSecrets() {
        switch row.direction {
        case .upload: forgetLinks()
        case .download: forgetURLSecrets()
        }
    }

    private mutating func forgetLinks() {
        // A session that the user named by its link has no other credential either.
        let needsLink =
            row.text(.link) != nil
            || row.text(.sessionLink) != nil && row.text(.givenSessionID) != nil
        if needsLink { set(.isLinkRedacted, true) }
        clear(.link, .sessionLink)
        guard let url = row.text(.uploadURL), ServiceLink.isIn(url) else { return }
        set(.uploadURL, ServiceLink.removed(from: url))
    }

    private mutating func forgetURLSecrets() {
        guard let url = row.text(.remoteURL) else { return }
        let plain = URLText.withoutSecrets(url)
        guard plain != url else { return }
        set(.remoteURL, plain)
        set(.isURLRedacted, true)
    }
}
