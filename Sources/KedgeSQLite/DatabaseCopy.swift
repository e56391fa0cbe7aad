internal import Foundation
internal import GRDB
package import KedgeFiles
internal import KedgeMigrations

/// Why the rows of a data directory cannot be looked at.
package enum DatabaseCopyError: Error, Hashable, Sendable {
    /// There is no database.
    case missing
    /// It has another schema than this program; the service or `kedge migrate` brings it up to date.
    case otherSchema(found: Int, known: Int)
    /// It is damaged so badly that SQLite does not open it.
    case damaged
}

/// A database as it is now, opened without touching the original.
///
/// SQLite cannot read a database in WAL mode and leave its directory as it was: opening makes side
/// files, closing moves the log into the database. So a look works on a copy with its log, which needs
/// as much room in the directory for temporary files, and goes at the end.
package final class DatabaseCopy: Sendable {
    /// The copy, open.
    package let store: SQLiteStore
    private let directory: String
    private let pool: BlockingPool

    private init(store: SQLiteStore, directory: String, pool: BlockingPool) {
        self.store = store
        self.directory = directory
        self.pool = pool
    }

    /// Copies and opens. Nobody else may use the original meanwhile.
    ///
    /// - Throws: ``DatabaseCopyError``, or what the file system or SQLite says.
    package static func make(
        of path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem()
    ) async throws -> DatabaseCopy {
        let (directory, queue) = try await pool.run {
            guard try fileSystem.status(of: path) != nil else { throw DatabaseCopyError.missing }
            let directory = try makeDirectory()
            do {
                let target = directory + "/kedge.sqlite"
                // The log, and the journal of a database that was never in WAL mode.
                for suffix in ["", "-wal", "-journal"] {
                    try copy(path + suffix, to: target + suffix, in: fileSystem)
                }
                return (directory, try open(target))
            } catch {
                // The error is what matters; what stays is in the directory for temporary files.
                try? FileManager.default.removeItem(atPath: directory)
                throw error
            }
        }
        // Nobody trusts a copy that failed: whatever is asked next is refused with the same error.
        let commits = GroupCommit(queue: queue, onFatal: { _ in })
        return DatabaseCopy(
            store: SQLiteStore(queue: queue, pool: pool, commits: commits), directory: directory,
            pool: pool)
    }

    /// Closes the copy and removes it.
    package func close() async {
        // Nothing in the copy is of use any more, so no error is either. What cannot be removed is in
        // the directory for temporary files, which the system clears.
        try? await store.close()
        try? await pool.run { [directory] in
            try FileManager.default.removeItem(atPath: directory)
        }
    }

    private static func makeDirectory() throws -> String {
        let parent = FileManager.default.temporaryDirectory.path
        var template = Array("\(parent)/kedge-check-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw FileError(operation: "mkdtemp", path: parent, number: errno)
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Copies a file in pieces of 1 MiB; an absent one is no error.
    private static func copy(
        _ source: String, to target: String, in fileSystem: any FileSystem
    ) throws(FileError) {
        guard try fileSystem.status(of: source) != nil else { return }
        let (input, output) = (
            try fileSystem.open(source, .read), try fileSystem.open(target, .createNew)
        )
        let buffer = BufferPool(bufferCapacity: 1 << 20, keptCount: 0).take()
        var offset: Int64 = 0
        repeat {
            buffer.removeAll()
            try buffer.fillFree { memory throws(FileError) in
                try input.read(into: memory, at: offset)
            }
            try output.write(buffer.bytes, at: offset)
            offset += Int64(buffer.count)
        } while buffer.count > 0
        try input.close()
        try output.close()
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        do {
            let queue = try DatabaseFile.open(at: path)
            try requireSchema(of: queue)
            return queue
        } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        {
            throw DatabaseCopyError.damaged
        }
    }

    /// - Throws: ``DatabaseCopyError/otherSchema(found:known:)``.
    static func requireSchema(of queue: DatabaseQueue) throws {
        let found = try queue.read { db in
            try db.tableExists("schema_migration")
                ? Int.fetchOne(db, sql: "SELECT max(number) FROM schema_migration") ?? 0 : 0
        }
        let known = SQLiteStore.migrations.newestNumber
        guard found == known else {
            throw DatabaseCopyError.otherSchema(found: found, known: known)
        }
    }
}
