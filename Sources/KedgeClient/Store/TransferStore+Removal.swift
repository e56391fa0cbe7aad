internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Tables with rows about the chunks of a transfer.
    private static let chunkTables = [
        "transfer_chunk_attempt", "upload_chunk_digest", "transfer_mismatch", "download_partial",
    ]

    /// Removes the record of a transfer that has ended.
    ///
    /// - Throws: `ILLEGAL_TRANSITION` for a transfer that can still run, also again.
    package func removeRecord(_ id: TransferID) async throws {
        try await transaction("remove record") { database in
            let row = try TransferRow.find(id, in: database)
            guard try row.state.isFinal else {
                throw TransferError(
                    .illegalTransition, operation: "remove record", resource: id.text,
                    explanation: "It is \(try row.state.rawValue); cancel it first.")
            }
            try Self.remove([id.text], in: database)
        }
    }

    /// Removes the records of transfers that ended in one of the states, the last change of which
    /// is older than the time.
    ///
    /// - Returns: The number of removed records.
    package func removeRecords(
        in states: Set<TransferState>, before time: Timestamp
    ) async throws -> Int {
        let states = states.filter(\.isFinal)
        // Most calls find none, and need not wait for another process that writes.
        let isAny = try await reading("look for old records") { database in
            try !Self.ids(in: states, before: time, database).isEmpty
        }
        guard isAny else { return 0 }
        return try await transaction("remove records") { database in
            let ids = try Self.ids(in: states, before: time, database)
            try Self.remove(ids, in: database)
            return ids.count
        }
    }

    /// Returns the ids of transfers in one of the states whose last change is older than the time.
    private static func ids(
        in states: Set<TransferState>, before time: Timestamp, _ database: Database
    ) throws -> [String] {
        var ids: [String] = []
        for direction in [TransferDirection.upload, .download] {
            for state in states {
                ids += try String.fetchAll(
                    database,
                    sql: """
                        SELECT transfer_id FROM \(direction.table)
                        WHERE state = ? AND updated_at < ?
                        """, arguments: [state.rawValue, time.millisecondsSinceEpoch])
            }
        }
        return ids
    }

    private static func remove(_ ids: [String], in database: Database) throws {
        for table in ["upload_transfer", "download_transfer"] + chunkTables {
            let statement = try database.makeStatement(
                sql: "DELETE FROM \(table) WHERE transfer_id = ?")
            for id in ids { try statement.execute(arguments: [id]) }
        }
    }
}
