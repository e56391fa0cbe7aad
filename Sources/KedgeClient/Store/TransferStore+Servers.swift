internal import GRDB
internal import KedgeModel

/// Servers that answered as a Kedge does, of whatever transfer.
extension TransferStore {
    func isKnownServer(_ url: String) async throws -> Bool {
        let url = URLText.withoutUserInfo(url)
        return try await reading("look for server") { database in
            try Int.fetchOne(
                database, sql: "SELECT 1 FROM known_server WHERE server_url = ?", arguments: [url])
                != nil
        }
    }

    /// The server answered as a Kedge does.
    func recordKnownServer(_ url: String) async throws {
        // The password of one who no longer uploads there has no business in the records.
        let (url, now) = (URLText.withoutUserInfo(url), now())
        try await transaction("record server") { database in
            try database.execute(
                sql: "INSERT OR IGNORE INTO known_server VALUES (?, ?)",
                arguments: [url, now.millisecondsSinceEpoch])
        }
    }
}
