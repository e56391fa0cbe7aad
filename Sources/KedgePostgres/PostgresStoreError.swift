/// Why a database is not used. Each is for the one who configures the service; none holds a secret.
package enum PostgresStoreError: Error, Hashable, Sendable {
    /// The URL cannot be read; the text says which part.
    case invalidURL(String)
    case serverTooOld(found: Int, needed: Int)
    /// A setting of the server under which it may lose what it has acknowledged.
    case unsafeSetting(name: String, value: String)
    /// A later version of the program has been here; what it stored would be misread.
    case newerSchema(found: Int, known: Int)
    /// The text of a migration that was applied differs from the one in the program.
    case editedMigration(number: Int, name: String)
}

extension PostgresStoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .invalidURL(let reason): "the metadata URL cannot be used: \(reason)"
        case .serverTooOld(let found, let needed):
            "PostgreSQL \(needed) or newer is needed, this is \(found)"
        case .unsafeSetting(let name, let value):
            "PostgreSQL runs with \(name)=\(value) and may lose what it has acknowledged; "
                + "allow_unsafe=on in the metadata URL accepts that"
        case .newerSchema(let found, let known):
            "the database has schema \(found), this program knows schemas up to \(known)"
        case .editedMigration(let number, let name):
            "migration \(number) (\(name)) was changed after it had been applied"
        }
    }
}
