package import KedgeEngine
internal import KedgeModel

extension PostgresStore {
    package func stagingState(of key: StagingKey) async throws -> String? {
        try await single { try $0.stagingState(of: key)?.text }
    }

    /// Idempotent: a second run finds and returns the recorded state.
    package func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        try await write { db in
            // The server evaluates the condition again if it waited for a change of the row.
            _ = try db.query(
                """
                UPDATE session SET staging_state = $2
                WHERE staging_key = $1 AND staging_state IS NOT DISTINCT FROM $3
                """, [.text(key.text), .text(state), .text(expected)])
            guard let stored = try db.stagingState(of: key) else { throw MetadataError.notFound }
            return stored.text
        }
    }

    /// Idempotent: a second run finds its own identity.
    package func bind(toBytesAt identity: String) async throws {
        try await write { db in
            _ = try db.query(
                "INSERT INTO byte_place (identity) VALUES ($1) ON CONFLICT DO NOTHING",
                [.text(identity)])
            var row = try db.query("SELECT identity FROM byte_place").firstRow
            guard let stored = try row?.text(), stored != identity else { return }
            throw MetadataError.foreignBytes(stored)
        }
    }
}

/// The recorded state of a staging area; may be empty.
private struct RecordedStagingState {
    let text: String?
}

extension PostgresConnection {
    /// Returns nil when no session has the key.
    fileprivate func stagingState(of key: StagingKey) throws -> RecordedStagingState? {
        var row = try query(
            "SELECT staging_state FROM session WHERE staging_key = $1", [.text(key.text)]
        ).firstRow
        return row == nil ? nil : RecordedStagingState(text: row?.optionalText())
    }
}
