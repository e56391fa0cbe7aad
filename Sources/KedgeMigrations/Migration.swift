/// One numbered step of a schema, as SQL text.
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

/// A difference between the database's history and the program's; the program must not use the
/// database.
package enum MigrationError: Error, Hashable, Sendable {
    /// A later version of the program has changed the database; this one would misread its data.
    case newerSchema(found: Int, known: Int)
    /// The text of an applied migration differs from the program's.
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
