internal import GRDB
internal import KedgeModel

extension TransferStore {
    /// Value of the index column for the whole file.
    private static let wholeFile = -1

    /// Records two digests that differ.
    func recordMismatch(_ mismatch: DigestMismatch, of lease: Lease) async throws {
        try await update(lease, operation: "record mismatch") { change in
            try change.database.execute(
                sql: """
                    INSERT INTO transfer_mismatch
                        (transfer_id, chunk_index, expected_sha256, actual_sha256, noticed_count)
                    VALUES (:id, :chunk, :expected, :actual, 1)
                    ON CONFLICT (transfer_id, chunk_index) DO UPDATE SET
                        expected_sha256 = :expected, actual_sha256 = :actual,
                        noticed_count = noticed_count + 1
                    """,
                arguments: [
                    "id": lease.id.text, "chunk": mismatch.chunk ?? Self.wholeFile,
                    "expected": mismatch.expectedSha256.blob,
                    "actual": mismatch.actualSha256.blob,
                ])
        }
    }

    /// Returns the mismatches, that of the whole file first.
    func mismatches(of id: TransferID) async throws -> [DigestMismatch] {
        try await reading("read mismatches") { database in
            try Row.fetchAll(
                database,
                sql: "SELECT * FROM transfer_mismatch WHERE transfer_id = ? ORDER BY chunk_index",
                arguments: [id.text]
            ).map { row in
                let columns = TransferRow(row, direction: .upload)
                let chunk = try columns.requiredInt(.chunkIndex)
                return DigestMismatch(
                    chunk: chunk == Self.wholeFile ? nil : chunk,
                    expectedSha256: try columns.required(
                        .expectedSHA256, try columns.digest(.expectedSHA256)),
                    actualSha256: try columns.required(
                        .actualSHA256, try columns.digest(.actualSHA256)),
                    count: try columns.requiredInt(.noticedCount))
            }
        }
    }
}
