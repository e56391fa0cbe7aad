package import GRDB
package import KedgeFiles

/// A setting that SQLite did not take.
package struct DatabaseSettingError: Error, Hashable, Sendable, CustomStringConvertible {
    package let setting: String
    package let expected: String
    package let found: String

    package var description: String {
        "SQLite keeps \(setting) at \(found); \(expected) is needed"
    }
}

/// Opens SQLite databases so that a commit is on stable storage when it returns, unless durability is
/// off.
package enum DatabaseFile {
    /// Opens or makes the database; blocks.
    ///
    /// The file has mode 0600, and SQLite gives its side files the mode of the database. Missing
    /// directories are made with mode 0700; one that exists keeps the mode its owner gave it.
    ///
    /// - Parameter durability: ``Durability/off`` leaves the database's own syncs out. Those of
    ///   directories are the file system's.
    /// - Throws: ``DatabaseSettingError`` when a setting did not take, the file system's or the
    ///   database's own error.
    package static func open(
        at path: String, in fileSystem: any FileSystem = POSIXFileSystem(),
        durability: Durability = .on
    ) throws -> DatabaseQueue {
        try makeFile(at: path, in: fileSystem)
        var configuration = Configuration()
        configuration.label = "kedge.database"
        configuration.busyMode = .timeout(Double(busyTimeoutMilliseconds) / 1000)
        // One connection for everything. SQLite before 3.51.3 can damage a database when one
        // connection checkpoints while another one resets the log (sqlite.org/wal.html, "The
        // WAL-Reset Bug"), and Debian 12 has 3.40. The journal mode is set below and not by GRDB,
        // which would lower `synchronous` to NORMAL while doing so.
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { db in
            let settings = settings(durability)
            for setting in settings { try setting.apply(to: db) }
            // Only now, so that none has changed an earlier one.
            for setting in settings { try setting.confirm(in: db) }
        }
        return queue
    }

    /// Opens an existing database for reading beside the process that writes it; blocks.
    ///
    /// Such a connection writes no page and makes no checkpoint, so it cannot meet the fault that needs two
    /// connections which do. Each read sees the last commit before it.
    package static func openForReading(at path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "kedge.reading"
        configuration.readonly = true
        configuration.busyMode = .timeout(Double(busyTimeoutMilliseconds) / 1000)
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    private static let busyTimeoutMilliseconds = 5000

    /// In this order; each one is read back, because SQLite ignores what it cannot do.
    private static func settings(_ durability: Durability) -> [Setting] {
        [
            // Before the journal mode, whose change writes a new database and would sync it. Set
            // outright, it outlasts that change.
            synchronous(durability),
            Setting("journal_mode", "WAL", readsBack: "wal"),
            Setting("foreign_keys", "ON", readsBack: "1"),
            Setting("busy_timeout", "\(busyTimeoutMilliseconds)"),
            // An I/O error on a mapped page would be a signal instead of an error code.
            Setting("mmap_size", "0"),
            // About 4 MiB of log. A checkpoint that fails is tried again with all its pages written
            // anew, so its errors, which SQLite keeps to itself, lose nothing.
            Setting("wal_autocheckpoint", "1000"),
            // What one large transaction made of the log is given back afterwards.
            Setting("journal_size_limit", "\(64 << 20)"),
            Setting("temp_store", "MEMORY", readsBack: "2"),
            Setting("trusted_schema", "OFF", readsBack: "0"),
            Setting("cell_size_check", "ON", readsBack: "1"),
        ]
    }

    private static func synchronous(_ durability: Durability) -> Setting {
        switch durability {
        // A commit is synced. NORMAL loses the last ones in a power cut.
        case .on: Setting("synchronous", "FULL", readsBack: "2")
        case .off: Setting("synchronous", "OFF", readsBack: "0")
        }
    }

    /// Makes the file with its mode before SQLite would make it readable for everybody. An existing
    /// file is not opened: closing it would drop the locks of a connection of this process.
    private static func makeFile(at path: String, in fileSystem: any FileSystem) throws {
        guard try fileSystem.status(of: path) == nil else { return }
        let parent = parentDirectory(of: path)
        try makeDirectory(parent, in: fileSystem)
        do {
            try fileSystem.open(path, .createNew).close()
        } catch  where error.code == .exists {
            // Another process was faster.
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
