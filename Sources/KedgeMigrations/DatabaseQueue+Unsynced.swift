package import GRDB

extension DatabaseQueue {
    /// Runs one statement whose commit is not synced: it survives the end of the process, but a
    /// power loss may undo it. The next synced commit makes it durable. For databases that
    /// otherwise sync their commits.
    ///
    /// In WAL mode `synchronous=NORMAL` only omits the sync of a commit: the log stays in order,
    /// and checkpoints are synced (sqlite.org/pragma.html#pragma_synchronous).
    ///
    /// - Throws: Errors of the statement; ``DatabaseSettingError`` when synced commits could not be
    ///   restored.
    package func writeUnsynced(_ statement: (Database) throws -> Void) throws {
        try writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            let result = Swift.Result { try statement(database) }
            try database.execute(sql: "PRAGMA synchronous = FULL")
            let level = try database.cachedStatement(sql: "PRAGMA synchronous")
            let found = try Int.fetchOne(level)
            guard found == 2 else {
                throw DatabaseSettingError(
                    setting: "synchronous", expected: "2",
                    found: found.map(String.init) ?? "nothing")
            }
            try result.get()
        }
    }
}
