internal import KedgeEngine

extension PostgresStore {
    /// Connects like ``open(url:configuration:onNotice:)``, but does not migrate the schema.
    ///
    /// - Throws: `olderSchema`, and the errors of ``open(url:configuration:onNotice:)``.
    package static func openUnchanged(
        url: String, onNotice: @escaping @Sendable (String) -> Void
    ) async throws -> PostgresStore {
        let configuration = PostgresConfiguration()
        let pool = try PostgresPool(
            try ConnectionString(url), configuration: configuration, clock: DatabaseClock(),
            onNotice: onNotice)
        let found: Int
        do {
            found = try await pool.run { link, deadline in
                try link.single(until: deadline) { try $0.newestMigration() }
            }
        } catch {
            await pool.close()
            throw MetadataError(error)
        }
        await pool.close()
        let known = EmbeddedMigrations.all.count
        guard found >= known else {
            throw PostgresStoreError.olderSchema(found: found, known: known)
        }
        // The schema is current, so this changes nothing.
        return try await open(url: url, configuration: configuration, onNotice: onNotice)
    }
}

extension PostgresConnection {
    /// Number of the last migration; 0 in a database without our schema.
    fileprivate func newestMigration() throws -> Int {
        let table = try query("SELECT to_regclass('schema_migration')::text").firstRow
        guard var table, table.optionalText() != nil else { return 0 }
        var row = try query("SELECT coalesce(max(number), 0) FROM schema_migration").firstRow
        return Int(try row?.integer() ?? 0)
    }
}
