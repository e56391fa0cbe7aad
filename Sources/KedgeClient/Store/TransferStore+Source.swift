internal import GRDB
package import KedgeModel

/// Facts about an upload's file, recorded to detect changes later.
extension TransferStore {
    /// Returns the recorded digests of the chunks that were read.
    package func chunkDigests(of id: TransferID) async throws -> [Int: SHA256Digest] {
        try await reading("read chunk digests") { database in
            let rows = try Row.fetchAll(
                database,
                sql: "SELECT chunk_index, sha256 FROM upload_chunk_digest WHERE transfer_id = ?",
                arguments: [id.text])
            var digests: [Int: SHA256Digest] = [:]
            for row in rows {
                let columns = TransferRow(row, direction: .upload)
                let index = try columns.requiredInt(.chunkIndex)
                digests[index] = try columns.digest(.sha256)
            }
            return digests
        }
    }

    /// Records that the content equals that of the record, whatever its time of change.
    ///
    /// - Parameter hash: The running whole-file hash of the present file.
    func acceptSource(
        _ identity: SourceIdentity, hash: SavedHash, of lease: Lease
    ) async throws {
        try await update(lease, operation: "accept source") { change in
            change.set(.changedNanoseconds, identity.changedNanoseconds)
            change.setHash(hash)
            change.clear(.fileHash)
        }
    }

    /// Saves the hash of the bytes up to here before they are sent. It can later prove which bytes
    /// the server has, even if the server's answer is lost.
    func saveHash(_ hash: SavedHash, of lease: Lease) async throws {
        try await update(lease, operation: "save hash") { change in change.setHash(hash) }
    }

    /// Records that a completed upload's file was compared with the hash of the record.
    func acceptFinishedSource(_ identity: SourceIdentity, of id: TransferID) async throws {
        try await transaction("accept finished source") { database in
            try database.execute(
                sql: """
                    UPDATE upload_transfer SET changed_nanoseconds = ?
                    WHERE transfer_id = ? AND state = 'completed'
                    """,
                arguments: [identity.changedNanoseconds, id.text])
        }
    }
}

extension RowChange {
    /// Records the digest of a chunk that the server now has.
    func setDigest(_ digest: SHA256Digest, ofChunk index: Int, in id: TransferID) throws {
        try database.execute(
            sql: """
                INSERT OR REPLACE INTO upload_chunk_digest (transfer_id, chunk_index, sha256)
                VALUES (?, ?, ?)
                """,
            arguments: [id.text, index, digest.blob])
    }

    /// Discards the digests of all chunks read so far, because they prove nothing any more.
    func discardDigests() throws {
        try database.execute(
            sql: "DELETE FROM upload_chunk_digest WHERE transfer_id = ?",
            arguments: [row.text(.transferID)])
    }
}
