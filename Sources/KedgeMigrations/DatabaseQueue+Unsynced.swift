package import GRDB

extension DatabaseQueue {
    /// Runs the updates in one transaction that is committed without a sync of its own: it survives the
    /// end of the process, and a power cut may take it back. The next synced commit makes it durable.
    ///
    /// In WAL mode `synchronous=NORMAL` leaves out the sync of a commit and nothing else: the log stays
    /// in order, and checkpoints are synced (sqlite.org/pragma.html#pragma_synchronous).
    ///
    /// - Throws: what the updates throw, which takes them back; ``DatabaseSettingError`` when commits
    ///   could not be made to sync again.
    package func writeUnsynced<Result>(
        _ updates: (Database) throws -> Result
    ) throws -> Result {
        try writeWithoutTransaction { database in
            let level = try Int.fetchOne(database, sql: "PRAGMA synchronous") ?? Self.full
            if level == Self.full { try database.execute(sql: "PRAGMA synchronous = NORMAL") }
            let result = Swift.Result { try Self.inTransaction(database, updates) }
            try database.execute(sql: "PRAGMA synchronous = \(level)")
            let restored = try Int.fetchOne(database, sql: "PRAGMA synchronous")
            guard restored == level else {
                throw DatabaseSettingError(
                    setting: "synchronous", expected: "\(level)",
                    found: restored.map(String.init) ?? "nothing")
            }
            return try result.get()
        }
    }

    private static var full: Int { 2 }

    private static func inTransaction<Result>(
        _ database: Database, _ updates: (Database) throws -> Result
    ) throws -> Result {
        try database.beginTransaction(.immediate)
        do {
            let result = try updates(database)
            try database.commit()
            return result
        } catch {
            // Whatever fails here, the transaction is taken back when the connection ends at the latest.
            if database.isInsideTransaction { try? database.rollback() }
            throw error
        }
    }
}
