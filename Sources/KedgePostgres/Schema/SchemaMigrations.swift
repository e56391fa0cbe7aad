internal import KedgeHash
internal import KedgeModel

/// One numbered step of the schema, as SQL text.
struct SchemaMigration: Sendable {
    let number: Int
    let name: String
    let sql: String

    /// Digest of the text, to detect a later change.
    var fingerprint: String { SHA256Hasher.digest(of: Array(sql.utf8)).hex }
}

/// Migrates a database to the newest schema that the program knows; never downgrades.
struct SchemaMigrations: Sendable {
    private let migrations: [SchemaMigration]

    /// - Precondition: The numbers are 1, 2, 3 and so on; the build refuses other numbers.
    init(_ migrations: [SchemaMigration]) {
        precondition(
            migrations.map(\.number) == Array(1..<migrations.count + 1),
            "migrations are numbered without gaps")
        self.migrations = migrations
    }

    /// The migrations of this store.
    static let ours = SchemaMigrations(
        EmbeddedMigrations.all.map {
            SchemaMigration(number: $0.number, name: $0.name, sql: $0.sql)
        })

    /// Applies the missing migrations, each in its own transaction. Blocks until they are done.
    ///
    /// Several nodes may do this at once: one migrates, the others wait for its lock and then find
    /// nothing to do. An up-to-date schema takes no lock.
    ///
    /// - Throws: ``PostgresStoreError`` before any change, or the failure of a statement. The
    ///   migrations before the failing one stay applied.
    func migrate(_ link: ReconnectingConnection, timeout: Duration) throws {
        let deadline = Deadline.after(timeout)
        while try !isUpToDate(link, until: deadline) {
            do {
                try applyNext(on: link.connected(until: deadline), timeout)
            } catch let failure as PostgresFailure {
                // Closing the connection rolls its transaction back; the loop then reads how far it
                // got.
                link.disconnect()
                let isTransient =
                    failure.endsConnection || failure.isConflict || failure.isLockTimeout
                guard isTransient, !deadline.isOver else { throw failure }
                link.note(failure)
                link.pause(upTo: .milliseconds(500))
            }
        }
    }

    private func isUpToDate(_ link: ReconnectingConnection, until deadline: Deadline) throws -> Bool
    {
        try link.single(until: deadline) { db in
            let history = try db.query("SELECT to_regclass('schema_migration')::text").firstRow
            guard var history, history.optionalText() != nil else { return false }
            return try checkedCount(in: db) == migrations.count
        }
    }

    /// Applies the next migration, unless another node has just done so.
    private func applyNext(on db: PostgresConnection, _ timeout: Duration) throws {
        // Many short waits for locks: while `ALTER TABLE` waits for one, every reader of the table
        // waits behind it.
        try db.script(
            """
            BEGIN;
            SET LOCAL lock_timeout = 2000;
            SET LOCAL statement_timeout = 0;
            SELECT pg_advisory_xact_lock(\(Self.lock));
            \(Self.historyTable)
            """)
        do {
            let count = try checkedCount(in: db)
            if count < migrations.count { try apply(migrations[count], in: db, timeout) }
            try db.script("COMMIT")
        } catch let failure as PostgresFailure where failure.endsConnection {
            throw failure
        } catch {
            try db.script("ROLLBACK")
            throw error
        }
    }

    private func apply(
        _ migration: SchemaMigration, in db: PostgresConnection, _ timeout: Duration
    ) throws {
        try db.script(migration.sql, timeout: timeout)
        _ = try db.query(
            """
            INSERT INTO schema_migration (number, name, sha256, applied_at)
            VALUES ($1, $2, $3, \(DatabaseClock.expression))
            """,
            [.int4(migration.number), .text(migration.name), .text(migration.fingerprint)])
    }

    /// Number of the database's migrations, after checking that they equal ours.
    private func checkedCount(in db: PostgresConnection) throws -> Int {
        let rows = try db.query("SELECT number, sha256 FROM schema_migration ORDER BY number").rows
            .map { row in
                var row = row
                return (number: Int(try row.integer()), fingerprint: try row.text())
            }
        if let last = rows.last, last.number > migrations.count {
            throw PostgresStoreError.newerSchema(found: last.number, known: migrations.count)
        }
        for (row, migration) in zip(rows, migrations)
        where row.number != migration.number || row.fingerprint != migration.fingerprint {
            throw PostgresStoreError.editedMigration(number: migration.number, name: migration.name)
        }
        return rows.count
    }

    /// The lock's numbers: the ASCII of "kedg" and "migr".
    private static let lock = "\(0x6b65_6467), \(0x6d69_6772)"

    private static let historyTable = """
        CREATE TABLE IF NOT EXISTS schema_migration (
            number INTEGER PRIMARY KEY CHECK (number > 0),
            name TEXT NOT NULL,
            sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
            applied_at BIGINT NOT NULL
        );
        """
}

extension PostgresFailure {
    /// Whether another transaction held a lock for too long.
    fileprivate var isLockTimeout: Bool { kind == .refused(state: "55P03", constraint: nil) }
}
