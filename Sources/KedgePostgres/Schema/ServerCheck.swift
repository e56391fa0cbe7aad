/// Checks that the server keeps acknowledged writes.
enum ServerCheck {
    /// The first version with `pg_xact_status` and `xid8`.
    private static let neededVersion = 13

    /// Throws a ``PostgresStoreError`` for an unsuitable server, or a failure of the connection.
    static func run(on connection: PostgresConnection, _ string: ConnectionString) throws {
        let result = try connection.query(
            """
            SELECT current_setting('server_version_num')::int / 10000, current_setting('fsync'),
                current_setting('full_page_writes'), current_setting('synchronous_commit')
            """)
        guard var row = result.firstRow else { return }
        let version = Int(try row.integer())
        guard version >= neededVersion else {
            throw PostgresStoreError.serverTooOld(found: version, needed: neededVersion)
        }
        if string.allowsUnsafe { return }
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            let value = try row.text()
            // The other values of `synchronous_commit` flush at least to the primary's disk.
            guard value != "off" else {
                throw PostgresStoreError.unsafeSetting(name: name, value: value)
            }
        }
    }
}
