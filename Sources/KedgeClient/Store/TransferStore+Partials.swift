internal import Foundation
internal import GRDB
package import KedgeModel

/// Unfinished chunks of downloads.
extension TransferStore {
    /// Returns the partials of a download's unfinished chunks.
    package func partials(of id: TransferID) async throws -> [DownloadPartial] {
        try await reading("read partial chunks") { database in
            try Row.fetchAll(
                database,
                sql: "SELECT * FROM download_partial WHERE transfer_id = ? ORDER BY chunk_index",
                arguments: [id.text]
            ).map { try DownloadPartial(TransferRow($0, direction: .download)) }
        }
    }

    /// Notes bytes of a chunk in the temporary file. Not durable: after a power cut, the record may
    /// name fewer or more bytes than the file has.
    package func notePartial(
        _ part: SavedHash, ofChunk index: Int, of lease: Lease
    ) async throws {
        try await unsynced("note partial chunk") { database in
            // Cached, because it runs for every MiB that arrives.
            let statement = try database.cachedStatement(sql: Self.noteStatement)
            try statement.execute(
                arguments: Self.arguments(part, ofChunk: index, in: lease.id)
                    + ["token": lease.token])
            guard database.changesCount == 1 else { throw RunInterruption.leaseLost }
        }
    }

    private static let noteStatement = """
        INSERT INTO download_partial (transfer_id, chunk_index, noted_bytes, noted_state)
        SELECT :id, :index, :count, :state FROM download_transfer
            WHERE transfer_id = :id AND owner_token = :token
        ON CONFLICT (transfer_id, chunk_index) DO UPDATE SET
            noted_bytes = :count, noted_state = :state,
            synced_state = CASE WHEN synced_bytes <= :count THEN synced_state END,
            synced_bytes = CASE WHEN synced_bytes <= :count THEN synced_bytes ELSE 0 END
        """

    /// Discards the bytes of an unfinished chunk.
    package func discardPartial(ofChunk index: Int, of lease: Lease) async throws {
        try await transaction("discard partial chunk") { database in
            try Self.requireOwner(lease, in: database)
            try Self.deletePartial(ofChunk: index, in: lease.id, database)
        }
    }

    /// Records bytes of a chunk as durable in the temporary file.
    static func savePartial(
        _ part: SavedHash, ofChunk index: Int, in id: TransferID, _ database: Database
    ) throws {
        try database.execute(
            sql: """
                INSERT INTO download_partial (transfer_id, chunk_index, noted_bytes, noted_state,
                    synced_bytes, synced_state)
                VALUES (:id, :index, :count, :state, :count, :state)
                ON CONFLICT (transfer_id, chunk_index) DO UPDATE SET
                    noted_state = CASE WHEN noted_bytes > :count THEN noted_state ELSE :state END,
                    noted_bytes = max(noted_bytes, :count),
                    synced_bytes = :count, synced_state = :state
                """,
            arguments: arguments(part, ofChunk: index, in: id))
    }

    /// Deletes the partial of a chunk that is complete or starts over.
    static func deletePartial(
        ofChunk index: Int, in id: TransferID, _ database: Database
    ) throws {
        try database.execute(
            sql: "DELETE FROM download_partial WHERE transfer_id = ? AND chunk_index = ?",
            arguments: [id.text, index])
    }

    private static func arguments(
        _ part: SavedHash, ofChunk index: Int, in id: TransferID
    ) -> StatementArguments {
        [
            "id": id.text, "index": index, "count": part.offsetBytes,
            "state": Data(part.state),
        ]
    }

    private static func requireOwner(_ lease: Lease, in database: Database) throws {
        let token = try String.fetchOne(
            database, sql: "SELECT owner_token FROM download_transfer WHERE transfer_id = ?",
            arguments: [lease.id.text])
        guard token == lease.token else { throw RunInterruption.leaseLost }
    }
}

extension DownloadPartial {
    init(_ row: TransferRow) throws {
        let noted = SavedHash(
            offsetBytes: try row.required(.notedBytes, row.integer(.notedBytes)),
            state: try row.required(.notedState, row.bytes(.notedState)))
        let synced = row.bytes(.syncedState).flatMap { state in
            row.integer(.syncedBytes).map { SavedHash(offsetBytes: $0, state: state) }
        }
        self.init(index: try row.requiredInt(.chunkIndex), noted: noted, synced: synced)
    }
}
