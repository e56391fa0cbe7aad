internal import GRDB

/// An error for a SQLite library older than the tested ones.
package struct UntestedSQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
    package let version: String

    package init(version: String) { self.version = version }

    package var description: String {
        "SQLite \(version) is older than \(SQLiteVersion.oldestTested), the oldest tested version; "
            + "install a newer libsqlite3"
    }
}

/// A version number of SQLite.
package struct SQLiteVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The version of Debian 12. Its known fault ("The WAL-Reset Bug", sqlite.org/wal.html) needs
    /// two connections, and the store has one.
    package static let oldestTested = SQLiteVersion(numbers: [3, 40, 1])

    private let numbers: [Int]

    private init(numbers: [Int]) { self.numbers = numbers }

    /// Parses a version number; nil for other text.
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

    /// Checks the library's version; blocks.
    ///
    /// - Throws: ``UntestedSQLiteError``.
    package static func requireTested() throws {
        let text = try DatabaseQueue().read { db in
            try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? ""
        }
        try requireTested(text)
    }

    /// Throws ``UntestedSQLiteError`` for an older version.
    package static func requireTested(_ text: String) throws {
        guard let version = SQLiteVersion(text), version >= oldestTested else {
            throw UntestedSQLiteError(version: text)
        }
    }
}
