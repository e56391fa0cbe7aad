/// The reasons to refuse a database, for the operator of the service. None contains a secret.
package enum PostgresStoreError: Error, Hashable, Sendable {
    /// The URL is malformed; the text names the part.
    case invalidURL(String)
    case serverTooOld(found: Int, needed: Int)
    /// A setting of the server under which it may lose acknowledged writes.
    case unsafeSetting(name: String, value: String)
    /// A newer version of the program has migrated the database; its rows would be misread.
    case newerSchema(found: Int, known: Int)
    /// The database has no schema (0) or an older one than the program's, and stays as it is.
    case olderSchema(found: Int, known: Int)
    /// The text of an applied migration differs from the program's.
    case editedMigration(number: Int, name: String)
}

extension PostgresStoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .invalidURL(let reason): "the metadata URL cannot be used: \(reason)"
        case .serverTooOld(let found, let needed):
            "PostgreSQL \(needed) or newer is required, this is \(found)"
        case .unsafeSetting(let name, let value):
            "PostgreSQL runs with \(name)=\(value) and may lose what it has acknowledged; "
                + "set allow_unsafe=on in the metadata URL to accept that"
        case .newerSchema(let found, let known):
            "the database has schema \(found), this program knows schemas up to \(known)"
        case .olderSchema(let found, let known):
            "the database has schema \(found), this program needs schema \(known)"
        case .editedMigration(let number, let name):
            "migration \(number) (\(name)) was changed after it had been applied"
        }
    }
}
