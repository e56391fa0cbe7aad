internal import Foundation
internal import GRDB
internal import KedgeEngine
internal import KedgeModel

extension Database {
    /// Returns the committed chunks in order.
    func chunks(of session: SessionRow) throws -> [CommittedChunk] {
        var chunks: [CommittedChunk] = []
        try forEachRow(
            "SELECT idx, byte_count, sha256, location FROM chunk WHERE session = ? ORDER BY idx",
            [session.number]
        ) { row in
            chunks.append(try CommittedChunk(row))
        }
        return chunks
    }

    /// Returns the partial chunks in order, then the rivals.
    func partials(of session: SessionRow) throws -> [PartialRecord] {
        let partials = try rows(
            """
            SELECT \(PartialRecord.columns) FROM partial_chunk WHERE session = ? ORDER BY idx
            """, [session.number]
        ).map { try PartialRecord($0) }
        let rivals = try rows(
            """
            SELECT \(PartialRecord.rivalColumns) FROM rival_partial WHERE session = ? ORDER BY idx
            """, [session.number]
        ).map { try PartialRecord($0, isRival: true) }
        return partials + rivals
    }

    /// Returns the digest of a chunk; nil when it is not committed.
    func digest(ofChunk index: Int, of session: SessionRow) throws -> SHA256Digest? {
        try row(
            "SELECT sha256 FROM chunk WHERE session = ? AND idx = ?", [session.number, index])?
            .chunkDigest(at: 0)
    }

    func insert(_ chunk: CommittedChunk, of session: SessionRow) throws {
        // A layout without a size has no short last chunk yet; the schema checks the rest.
        let layout = session.record.layout
        guard let range = layout.range(ofChunk: chunk.index),
            layout.fileSize == nil || range.end - range.start == chunk.byteCount
        else {
            throw MetadataError.failed(
                "chunk \(chunk.index) of \(chunk.byteCount) bytes does not fit the session")
        }
        try run(
            """
            INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256, location)
            VALUES (?, ?, ?, ?, ?, ?)
            """,
            [
                session.number, chunk.index, chunk.byteCount, session.record.chunkSize,
                chunk.digest.data, chunk.location,
            ])
    }

    func save(_ partial: PartialRecord, of session: SessionRow) throws {
        guard let range = session.record.layout.range(ofChunk: partial.index),
            partial.byteCount < range.end - range.start
        else {
            throw MetadataError.failed(
                "\(partial.byteCount) bytes are not a part of chunk \(partial.index)")
        }
        guard !partial.isRival else { return try saveRival(partial, of: session) }
        try run(
            """
            INSERT OR REPLACE INTO partial_chunk (
                session, idx, byte_count, chunk_size, hash_state, declared_sha256, location,
                in_doubt)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                session.number, partial.index, partial.byteCount, session.record.chunkSize,
                partial.hashState.data, partial.declaredDigest?.data, partial.location,
                partial.isInDoubt,
            ])
    }

    private func saveRival(_ rival: PartialRecord, of session: SessionRow) throws {
        try run(
            """
            INSERT OR REPLACE INTO rival_partial (
                session, idx, byte_count, chunk_size, hash_state, declared_sha256, location)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [
                session.number, rival.index, rival.byteCount, session.record.chunkSize,
                rival.hashState.data, rival.declaredDigest?.data, rival.location,
            ])
    }

    func deletePartial(_ index: Int, isRival: Bool, of session: SessionRow) throws {
        let table = isRival ? "rival_partial" : "partial_chunk"
        try run("DELETE FROM \(table) WHERE session = ? AND idx = ?", [session.number, index])
    }

    /// Deletes all partials and rivals.
    func deletePartials(of session: SessionRow) throws {
        for table in ["partial_chunk", "rival_partial"] {
            try run("DELETE FROM \(table) WHERE session = ?", [session.number])
        }
    }

    /// Whether the chunks cover the whole file.
    func isComplete(_ session: SessionRow) throws -> Bool {
        guard let fileSize = session.record.fileSize else { return false }
        let row = try row(
            "SELECT count(*), coalesce(sum(byte_count), 0) FROM chunk WHERE session = ?",
            [session.number])
        guard let row else { return false }
        // Chunks have distinct indexes and lengths that fit the layout, so count and sum suffice.
        return row[0] as Int == session.record.layout.chunkCount && row[1] as Int64 == fileSize
    }
}

extension CommittedChunk {
    /// Reads the columns index, byte count, digest and location, in this order.
    init(_ row: Row) throws {
        self.init(
            index: row[0], byteCount: row[1], digest: try row.chunkDigest(at: 2), location: row[3])
    }
}

extension PartialRecord {
    static let rivalColumns = "idx, byte_count, hash_state, declared_sha256, location"
    static let columns = "\(rivalColumns), in_doubt"

    init(_ row: Row, isRival: Bool = false) throws {
        self.init(
            index: row["idx"], byteCount: row["byte_count"],
            hashState: [UInt8](row["hash_state"] as Data),
            declaredDigest: try row.digest("declared_sha256"), location: row["location"],
            isRival: isRival, isInDoubt: isRival ? false : row["in_doubt"])
    }
}

extension Row {
    /// Reads a digest that is never NULL, without copying the column.
    func chunkDigest(at index: Int) throws -> SHA256Digest {
        let digest = try withUnsafeData(atIndex: index) { data in
            data.flatMap { SHA256Digest(bytes: [UInt8]($0)) }
        }
        guard let digest else { throw MetadataError.failed("a chunk has no digest") }
        return digest
    }
}
