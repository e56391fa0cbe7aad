internal import GRDB
internal import KedgeModel
internal import KedgeTransport

/// Servers that have answered as Kedge servers, to any transfer.
extension TransferStore {
    package func isKnownServer(_ url: String) async throws -> Bool {
        let url = URLText.withoutUserInfo(url)
        return try await reading("look for server") { database in
            try Int.fetchOne(
                database, sql: "SELECT 1 FROM known_server WHERE server_url = ?", arguments: [url])
                != nil
        }
    }

    /// Records that the server answered as a Kedge server.
    func recordKnownServer(_ url: String) async throws {
        // Passwords do not belong in this table: it outlives their use.
        let (url, now) = (URLText.withoutUserInfo(url), now())
        try await transaction("record server") { database in
            try database.execute(
                sql: "INSERT OR IGNORE INTO known_server VALUES (?, ?)",
                arguments: [url, now.millisecondsSinceEpoch])
        }
    }
}
