package import GRDB

extension DatabaseQueue {
    /// Runs one statement whose commit is not synced: it survives the end of the process, and a power cut
    /// may take it back. The next synced commit makes it durable. For databases whose commits are
    /// synced otherwise.
    ///
    /// In WAL mode `synchronous=NORMAL` leaves out the sync of a commit and nothing else: the log stays
    /// in order, and checkpoints are synced (sqlite.org/pragma.html#pragma_synchronous).
    ///
    /// - Throws: what the statement throws; ``DatabaseSettingError`` when commits could not be made to
    ///   sync again.
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
