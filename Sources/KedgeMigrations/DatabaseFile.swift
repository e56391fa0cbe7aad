package import GRDB
package import KedgeFiles

/// A setting that SQLite did not accept.
package struct DatabaseSettingError: Error, Hashable, Sendable, CustomStringConvertible {
    package let setting: String
    package let expected: String
    package let found: String

    package var description: String {
        "SQLite keeps \(setting) at \(found); \(expected) is needed"
    }
}

/// Opens SQLite databases whose commits are on stable storage when they return, unless durability
/// is off.
package enum DatabaseFile {
    /// Opens or creates the database; blocks.
    ///
    /// The file has mode 0600, and SQLite gives its side files the same mode. Missing directories
    /// are created with mode 0700; an existing one keeps its mode.
    ///
    /// - Parameter durability: ``Durability/off`` disables the database's own syncs. Syncs of
    ///   directories depend on `fileSystem`.
    /// - Throws: ``DatabaseSettingError`` when SQLite did not accept a setting; errors of the file
    ///   system and the database.
    package static func open(
        at path: String, in fileSystem: any FileSystem = POSIXFileSystem(),
        durability: Durability = .on
    ) throws -> DatabaseQueue {
        try makeFile(at: path, in: fileSystem)
        var configuration = Configuration()
        configuration.label = "kedge.database"
        configuration.busyMode = .timeout(Double(busyTimeoutMilliseconds) / 1000)
        // One connection for everything. SQLite before 3.51.3 can damage a database when one
        // connection checkpoints while another resets the log (sqlite.org/wal.html, "The WAL-Reset
        // Bug"), and Debian 12 has 3.40. The journal mode is set below and not by GRDB, which would
        // lower `synchronous` to NORMAL.
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { db in
            let settings = settings(durability)
            for setting in settings { try setting.apply(to: db) }
            // After all are applied, so that no later setting has changed an earlier one.
            for setting in settings { try setting.confirm(in: db) }
        }
        return queue
    }

    /// Opens an existing database for reading while another process writes it; blocks.
    ///
    /// The connection writes no page and makes no checkpoint. So it cannot trigger the WAL-reset
    /// bug, which needs two connections that do. Each read sees the last commit before it.
    package static func openForReading(at path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "kedge.reading"
        configuration.readonly = true
        configuration.busyMode = .timeout(Double(busyTimeoutMilliseconds) / 1000)
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    private static let busyTimeoutMilliseconds = 5000

    /// The settings in order. Each one is read back, because SQLite ignores unsupported values.
    private static func settings(_ durability: Durability) -> [Setting] {
        [
            // Before the journal mode: changing that writes a new database and would sync it. An
            // explicit value survives that change.
            synchronous(durability),
            Setting("journal_mode", "WAL", readsBack: "wal"),
            Setting("foreign_keys", "ON", readsBack: "1"),
            Setting("busy_timeout", "\(busyTimeoutMilliseconds)"),
            // An I/O error on a mapped page would be a signal instead of an error code.
            Setting("mmap_size", "0"),
            // About 4 MiB of log. SQLite hides errors of a checkpoint. They lose nothing, because
            // the next checkpoint writes all pages again.
            Setting("wal_autocheckpoint", "1000"),
            // Limits the log that remains after a large transaction.
            Setting("journal_size_limit", "\(64 << 20)"),
            Setting("temp_store", "MEMORY", readsBack: "2"),
            Setting("trusted_schema", "OFF", readsBack: "0"),
            Setting("cell_size_check", "ON", readsBack: "1"),
        ]
    }

    private static func synchronous(_ durability: Durability) -> Setting {
        switch durability {
        // Syncs each commit. NORMAL loses the last commits in a power loss.
        case .on: Setting("synchronous", "FULL", readsBack: "2")
        case .off: Setting("synchronous", "OFF", readsBack: "0")
        }
    }

    /// Creates the file with its mode; SQLite would create it readable for all users. Does not open
    /// an existing file: closing it would drop the locks of a connection in this process.
    private static func makeFile(at path: String, in fileSystem: any FileSystem) throws {
        guard try fileSystem.status(of: path) == nil else { return }
        let parent = parentDirectory(of: path)
        try makeDirectory(parent, in: fileSystem)
        do {
            try fileSystem.open(path, .createNew).close()
        } catch  where error.code == .exists {
            // Another process created it first.
        }
        try fileSystem.syncDirectory(parent)
    }

    private static func makeDirectory(_ path: String, in fileSystem: any FileSystem) throws {
        guard try fileSystem.status(of: path) == nil else { return }
        let parent = parentDirectory(of: path)
        try makeDirectory(parent, in: fileSystem)
        try fileSystem.makeDirectory(path)
        try fileSystem.syncDirectory(parent)
    }

    private static func parentDirectory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// One connection setting and the text by which SQLite confirms it.
private struct Setting {
    let name: String
    let value: String
    let confirmation: String

    init(_ name: String, _ value: String, readsBack confirmation: String? = nil) {
        self.name = name
        self.value = value
        self.confirmation = confirmation ?? value
    }

    func apply(to db: Database) throws {
        try db.execute(sql: "PRAGMA \(name) = \(value)")
    }

    func confirm(in db: Database) throws {
        let found = try String.fetchOne(db, sql: "PRAGMA \(name)") ?? "nothing"
        guard found == confirmation else {
            throw DatabaseSettingError(setting: name, expected: confirmation, found: found)
        }
    }
}
