internal import KedgeEngine
package import KedgeModel

extension PostgresConnection {
    /// Returns the session, or nil.
    package func session(_ id: SessionID) throws -> SessionRow? {
        try session("WHERE id = $1", [.text(id.text)])
    }

    /// Returns the session and locks its row until the transaction ends. Every change of a session,
    /// its chunks or partials takes this lock first, so finalizing, canceling and committing
    /// exclude each other. Rows that only refer to the session can still be added.
    package func lockedSession(_ id: SessionID) throws -> SessionRow? {
        try session("WHERE id = $1 FOR NO KEY UPDATE", [.text(id.text)])
    }

    /// Returns the session and locks its row until the transaction ends.
    ///
    /// - Throws: `notFound` when there is none, `wrongState` when it is in another state.
    func lockedSession(_ id: SessionID, in states: SessionState...) throws -> SessionRow {
        guard let session = try lockedSession(id) else { throw MetadataError.notFound }
        guard states.contains(session.record.state) else {
            throw MetadataError.wrongState(session.record.state)
        }
        return session
    }

    /// Notifies other nodes of a change to the session, when the transaction commits.
    ///
    /// Only for changes that a client may wait for, not for each commit of a chunk: the server
    /// orders notifications under one lock for all databases, held until the commit is flushed.
    func notify(_ id: SessionID) throws {
        _ = try query("SELECT pg_notify('\(Self.channel)', $1)::text", [.text(id.text)])
    }

    /// The channel of change notifications.
    static let channel = "kedge_session"

    /// Whether the chunks cover the whole file.
    func isComplete(_ session: SessionRow) throws -> Bool {
        guard let fileSize = session.record.fileSize else { return false }
        var row = try query(
            "SELECT count(*), coalesce(sum(byte_count), 0)::bigint FROM chunk WHERE session = $1",
            [.int8(session.number)]
        ).firstRow
        // Chunks have distinct indexes and lengths that fit the layout, so count and sum suffice.
        return try row?.integer() == session.record.layout.chunkCount.map(Int64.init)
            && row?.integer() == fileSize
    }

    fileprivate func session(_ condition: String, _ values: [PostgresValue]) throws -> SessionRow? {
        try query("SELECT \(SessionRow.columns) FROM session \(condition)", values).firstRow
            .map { try SessionRow($0) }
    }
}
