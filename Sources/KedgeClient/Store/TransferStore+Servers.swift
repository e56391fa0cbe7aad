internal import GRDB
internal import KedgeModel

/// Servers that answered as a Kedge does, of whatever transfer.
extension TransferStore {
    func isKnownServer(_ url: String) async throws -> Bool {
        try await reading("look for server") { database in
            try Int.fetchOne(
                database, sql: "SELECT 1 FROM known_server WHERE server_url = ?", arguments: [url])
                != nil
        }
    }

    /// The server answered as a Kedge does.
    func recordKnownServer(_ url: String) async throws {
        let now = now()
        try await transaction("record server") { database in
            try database.execute(
                sql: "INSERT OR IGNORE INTO known_server VALUES (?, ?)",
                arguments: [url, now.millisecondsSinceEpoch])
        }
    }
}
