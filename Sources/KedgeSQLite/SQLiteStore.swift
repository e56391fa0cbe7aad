package import GRDB
package import KedgeEngine
package import KedgeFiles
package import KedgeMetrics
package import KedgeMigrations
package import KedgeModel

/// Stores sessions, chunks and files in one SQLite database (WAL, `synchronous=FULL` unless
/// durability is off).
///
/// Every operation is a body of SQL that ``GroupCommit`` runs in a shared transaction. Reads use
/// the same single connection: before 3.51.3, SQLite can damage a database when one connection
/// checkpoints while another writes, and Debian 12 has 3.40. The store never blocks the caller's
/// thread.
package final class SQLiteStore: MetadataStore {
    let commits: GroupCommit
    private let queue: DatabaseQueue
    private let pool: BlockingPool

    /// Creates a store for a database that ``DatabaseFile`` opened and ``migrations`` were applied
    /// to.
    package init(queue: DatabaseQueue, pool: BlockingPool, commits: GroupCommit) {
        self.queue = queue
        self.pool = pool
        self.commits = commits
    }

    /// The migrations of this store.
    package static let migrations = MigrationRunner(
        EmbeddedMigrations.all.map { Migration(number: $0.number, name: $0.name, sql: $0.sql) })

    /// Opens or creates the database and migrates its schema.
    ///
    /// - Parameters:
    ///   - pool: Runs blocking calls.
    ///   - durability: ``Durability/off`` omits every sync.
    ///   - metrics: Gets the time of each operation.
    ///   - onFatal: Ends the process; see ``GroupCommit``.
    /// - Throws: ``UntestedSQLiteError``, `MigrationError`, `DatabaseSettingError`, or an error of
    ///   the file system or SQLite.
    package static func open(
        at path: String, now: Timestamp, pool: BlockingPool, durability: Durability = .on,
        metrics: Metrics = Metrics(), onFatal: @escaping @Sendable (String) -> Void
    ) async throws -> SQLiteStore {
        let queue = try await pool.run {
            // Before a file is created.
            try SQLiteVersion.requireTested()
            let queue = try DatabaseFile.open(
                at: path, in: durability.fileSystem, durability: durability)
            try migrations.migrate(queue, now: now)
            return queue
        }
        return SQLiteStore(
            queue: queue, pool: pool,
            commits: GroupCommit(queue: queue, onFatal: onFatal, metrics: metrics))
    }

    /// Opens the database of a running service to read its rows; every write fails.
    ///
    /// - Throws: ``DatabaseCopyError``, or an error of SQLite.
    package static func openForReading(
        at path: String, pool: BlockingPool
    ) async throws -> SQLiteStore {
        let queue = try await pool.run {
            let queue = try DatabaseFile.openForReading(at: path)
            try DatabaseCopy.requireSchema(of: queue)
            return queue
        }
        // It makes no commits, so it cannot lose one.
        return SQLiteStore(
            queue: queue, pool: pool, commits: GroupCommit(queue: queue, onFatal: { _ in }))
    }

    package func rowCounts() async throws -> RowCounts {
        try await commits.read { db in
            let row = try db.row(
                """
                SELECT (SELECT count(*) FROM session WHERE state = 'open'),
                    (SELECT count(*) FROM session WHERE state = 'finalizing'),
                    (SELECT count(*) FROM garbage)
                """, [])
            return RowCounts(
                openSessions: row?[0] ?? 0, finalizingSessions: row?[1] ?? 0, garbage: row?[2] ?? 0)
        }
    }

    package func checkHealth() async throws {
        // Rewrites the first page unchanged: a real commit without a change.
        try await commits.write { try $0.execute(sql: "PRAGMA user_version = 0") }
    }

    package func close() async throws {
        try await commits.finish()
        do {
            try await pool.run { [queue] in try queue.close() }
        } catch {
            throw MetadataError(error)
        }
    }
}
