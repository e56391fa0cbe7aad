internal import GRDB

/// A SQLite library that is older than what this store is tested with.
package struct UntestedSQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
    package let version: String

    package init(version: String) { self.version = version }

    package var description: String {
        "SQLite \(version) is older than \(SQLiteVersion.oldestTested), the oldest that is tested; "
            + "install a newer libsqlite3"
    }
}

/// The number of a release of SQLite.
package struct SQLiteVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Debian 12's. Its known fault ("The WAL-Reset Bug", sqlite.org/wal.html) needs two connections, and
    /// the store has one.
    package static let oldestTested = SQLiteVersion(numbers: [3, 40, 1])

    private let numbers: [Int]

    private init(numbers: [Int]) { self.numbers = numbers }

    /// Nil for text that is no number of a release.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int($0) }
        guard numbers.count == parts.count, numbers.count >= 2 else { return nil }
        self.numbers = numbers
    }

    package var description: String { numbers.map { "\($0)" }.joined(separator: ".") }

    package static func < (left: SQLiteVersion, right: SQLiteVersion) -> Bool {
        left.numbers.lexicographicallyPrecedes(right.numbers)
    }

    /// Blocks.
    ///
    /// - Throws: ``UntestedSQLiteError``
    package static func requireTested() throws {
        let text = try DatabaseQueue().read { db in
            try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? ""
        }
        try requireTested(text)
    }

    /// - Throws: ``UntestedSQLiteError``
    package static func requireTested(_ text: String) throws {
        guard let version = SQLiteVersion(text), version >= oldestTested else {
            throw UntestedSQLiteError(version: text)
        }
    }
}
