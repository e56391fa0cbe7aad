package import GRDB
internal import KedgeHash
package import KedgeModel

/// Migrates a database to the newest schema that the program knows, and never back.
package struct MigrationRunner: Sendable {
    private let migrations: [Migration]

    /// - Precondition: The numbers are 1, 2, 3 and so on; the build refuses anything else.
    package init(_ migrations: [Migration]) {
        precondition(
            migrations.map(\.number) == Array(1..<migrations.count + 1),
            "migrations are numbered without gaps")
        self.migrations = migrations
    }

    /// The number of the newest schema that the program knows.
    package var newestNumber: Int { migrations.count }

    /// Applies the missing migrations, each in its own transaction; blocks until it is done.
    ///
    /// Several processes may run this at once: each step checks again under the write lock.
    ///
    /// - Returns: The migrations that this call applied.
    /// - Throws: ``MigrationError`` before any change, or the database's own error. In the second
    ///   case the migrations before the failing one stay applied.
    @discardableResult
    package func migrate(_ queue: DatabaseQueue, now: Timestamp) throws -> [Migration] {
        var done: [Migration] = []
        while let migration = try queue.writeWithoutTransaction({ try applyNext(in: $0, now: now) })
        {
            done.append(migration)
        }
        return done
    }

    /// Applies one migration; returns nil when none is left.
    private func applyNext(in db: Database, now: Timestamp) throws -> Migration? {
        var applied: Migration?
        try db.inTransaction(.immediate) {
            try db.execute(sql: Self.historyTable)
            let count = try checkedCount(in: db)
            guard count < migrations.count else { return .commit }
            let next = migrations[count]
            try db.execute(sql: next.sql)
            try db.execute(
                sql: "INSERT INTO schema_migration (number, name, sha256, applied_at) "
                    + "VALUES (?, ?, ?, ?)",
                arguments: [
                    next.number, next.name, next.fingerprint, now.millisecondsSinceEpoch,
                ])
            applied = next
            return .commit
        }
        return applied
    }

    /// Returns the number of applied migrations after checking that they equal the program's.
    private func checkedCount(in db: Database) throws -> Int {
        let rows = try Row.fetchAll(
            db, sql: "SELECT number, sha256 FROM schema_migration ORDER BY number")
        if let last = rows.last, let number = last["number"] as Int?, number > migrations.count {
            throw MigrationError.newerSchema(found: number, known: migrations.count)
        }
        for (row, migration) in zip(rows, migrations)
        where row["number"] != migration.number || row["sha256"] != migration.fingerprint {
            throw MigrationError.edited(number: migration.number, name: migration.name)
        }
        return rows.count
    }

    private static let historyTable = """
        CREATE TABLE IF NOT EXISTS schema_migration (
            number INTEGER PRIMARY KEY CHECK (number > 0),
            name TEXT NOT NULL,
            sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
            applied_at INTEGER NOT NULL
        ) STRICT
        """
}

extension Migration {
    /// Digest of the text, which reveals a later change.
    fileprivate var fingerprint: String { SHA256Hasher.digest(of: Array(sql.utf8)).hex }
}
