internal import KedgeHash
internal import KedgeModel

/// One numbered step of the schema, as text.
struct SchemaMigration: Sendable {
    let number: Int
    let name: String
    let sql: String

    /// Digest of the text, by which a later change is noticed.
    var fingerprint: String { SHA256Hasher.digest(of: Array(sql.utf8)).hex }
}

/// Brings a database to the newest schema that the program knows, and never back.
struct SchemaMigrations: Sendable {
    private let migrations: [SchemaMigration]

    /// - Precondition: The numbers are 1, 2, 3 and so on; the build refuses anything else.
    init(_ migrations: [SchemaMigration]) {
        precondition(
            migrations.map(\.number) == Array(1..<migrations.count + 1),
            "migrations are numbered without gaps")
        self.migrations = migrations
    }

    /// The schema of this store.
    static let ours = SchemaMigrations(
        EmbeddedMigrations.all.map {
            SchemaMigration(number: $0.number, name: $0.name, sql: $0.sql)
        })

    /// Applies what is missing, each migration in its own transaction; blocks until it is done.
    ///
    /// Several nodes may do this at once: one works, the others wait for its lock and then find
    /// nothing left to do. No lock is taken when there is nothing to do.
    ///
    /// - Throws: ``PostgresStoreError`` before anything is changed, or the failure of a statement;
    ///   then the migrations before the failing one stay applied.
    func migrate(_ link: DatabaseLink, patience: Duration) throws {
        let deadline = Deadline.after(patience)
        while try !isUpToDate(link, until: deadline) {
            do {
                try applyNext(on: link.connected(until: deadline), patience)
            } catch let failure as PostgresFailure {
                // The connection takes its transaction along; asking how far it came is enough.
                link.disconnect()
                let isTransient =
                    failure.endsConnection || failure.isConflict || failure.isLockTimeout
                guard isTransient, !deadline.isOver else { throw failure }
                link.note(failure)
                link.pause(upTo: .milliseconds(500))
            }
        }
    }

    private func isUpToDate(_ link: DatabaseLink, until deadline: Deadline) throws -> Bool {
        try link.single(until: deadline) { db in
            let history = try db.query("SELECT to_regclass('schema_migration')::text").firstRow
            guard var history, history.optionalText() != nil else { return false }
            return try checkedCount(in: db) == migrations.count
        }
    }

    /// Applies one migration, unless another node has done so meanwhile.
    private func applyNext(on db: PostgresConnection, _ patience: Duration) throws {
        // Short waits for locks, and many of them: while ALTER TABLE waits for one, every reader of
        // the table waits behind it.
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
            if count < migrations.count { try apply(migrations[count], in: db, patience) }
            try db.script("COMMIT")
        } catch let failure as PostgresFailure where failure.endsConnection {
            throw failure
        } catch {
            try db.script("ROLLBACK")
            throw error
        }
    }

    private func apply(
        _ migration: SchemaMigration, in db: PostgresConnection, _ patience: Duration
    ) throws {
        try db.script(migration.sql, timeout: patience)
        _ = try db.query(
            """
            INSERT INTO schema_migration (number, name, sha256, applied_at)
            VALUES ($1, $2, $3, \(DatabaseClock.expression))
            """,
            [.int4(migration.number), .text(migration.name), .text(migration.fingerprint)])
    }

    /// How many migrations the database has, all of them equal to ours.
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

    /// Names the lock: "kedge" in ASCII, as far as it fits, and "migr".
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
    /// True when somebody else held a lock for too long.
    fileprivate var isLockTimeout: Bool { kind == .refused(state: "55P03", constraint: nil) }
}
