internal import GRDB
internal import KedgeModel

extension TransferStore {
    /// Returns the newest upload of a path to a server, except canceled ones.
    func newestUpload(
        of path: String, to serverURL: String, uploadProtocol: UploadProtocol
    ) async throws -> UploadTransfer? {
        try await reading("look for a finished upload") { database in
            try Row.fetchOne(
                database,
                sql: """
                    SELECT * FROM upload_transfer WHERE server_url = ? AND path = ?
                        AND dialect = ? AND state <> 'canceled'
                        ORDER BY created_at DESC, rowid DESC LIMIT 1
                    """,
                arguments: [serverURL, path, uploadProtocol.rawValue]
            ).map { try UploadTransfer(TransferRow($0, direction: .upload)) }
        }
    }
}
