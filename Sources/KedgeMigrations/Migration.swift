/// One numbered step of a schema, as text.
package struct Migration: Sendable, Hashable {
    package let number: Int
    package let name: String
    package let sql: String

    package init(number: Int, name: String, sql: String) {
        self.number = number
        self.name = name
        self.sql = sql
    }
}

/// A database that the program must not touch, because their histories differ.
package enum MigrationError: Error, Hashable, Sendable {
    /// A later version of the program has been here; what it stored would be misread.
    case newerSchema(found: Int, known: Int)
    /// The text of a migration that was applied differs from the one in the program.
    case edited(number: Int, name: String)
}

extension MigrationError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .newerSchema(let found, let known):
            "the database has schema \(found), this program knows schemas up to \(known)"
        case .edited(let number, let name):
            "migration \(number) (\(name)) was changed after it had been applied"
        }
    }
}
