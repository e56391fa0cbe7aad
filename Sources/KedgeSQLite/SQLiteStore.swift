package import GRDB
internal import KedgeEngine
package import KedgeFiles
package import KedgeMigrations
package import KedgeModel

/// Remembers sessions, chunks and files in one SQLite database (WAL, `synchronous=FULL` unless
/// durability is off).
///
/// Every operation is a body of SQL that ``GroupCommit`` runs in a transaction together with those
/// that wait at the same time. Reads use the same single connection: before 3.51.3 SQLite can
/// damage a database when one connection checkpoints while another one writes, and Debian 12 has
/// 3.40. Nothing here blocks the caller's thread.
package final class SQLiteStore: MetadataStore {
    let commits: GroupCommit
    private let queue: DatabaseQueue
    private let pool: BlockingPool

    /// Uses a database that ``DatabaseFile`` opened and ``migrations`` were applied to.
    package init(queue: DatabaseQueue, pool: BlockingPool, commits: GroupCommit) {
        self.queue = queue
        self.pool = pool
        self.commits = commits
    }

    /// The schema of this store.
    package static let migrations = MigrationRunner(
        EmbeddedMigrations.all.map { Migration(number: $0.number, name: $0.name, sql: $0.sql) })

    /// Opens or makes the database and brings its schema up to date.
    ///
    /// - Parameters:
    ///   - pool: Runs what blocks.
    ///   - durability: ``Durability/off`` leaves every sync out.
    ///   - onFatal: Ends the process; see ``GroupCommit``.
    /// - Throws: ``UntestedSQLiteError``, `MigrationError`, `DatabaseSettingError`, or what the file system or SQLite says.
    package static func open(
        at path: String, now: Timestamp, pool: BlockingPool, durability: Durability = .on,
        onFatal: @escaping @Sendable (String) -> Void
    ) async throws -> SQLiteStore {
        let queue = try await pool.run {
            // Before there is a file.
            try SQLiteVersion.requireTested()
            let queue = try DatabaseFile.open(
                at: path, in: durability.fileSystem, durability: durability)
            try migrations.migrate(queue, now: now)
            return queue
        }
        return SQLiteStore(
            queue: queue, pool: pool, commits: GroupCommit(queue: queue, onFatal: onFatal))
    }

    /// Opens the database of a service that runs, to look at its rows; whatever writes fails.
    ///
    /// - Throws: ``DatabaseCopyError``, or what SQLite says.
    package static func openForReading(
        at path: String, pool: BlockingPool
    ) async throws -> SQLiteStore {
        let queue = try await pool.run {
            let queue = try DatabaseFile.openForReading(at: path)
            try DatabaseCopy.requireSchema(of: queue)
            return queue
        }
        // It cannot lose a commit, for it makes none.
        return SQLiteStore(
            queue: queue, pool: pool, commits: GroupCommit(queue: queue, onFatal: { _ in }))
    }

    package func checkHealth() async throws {
        // Writes the first page with what it has already: a real commit that changes nothing.
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
