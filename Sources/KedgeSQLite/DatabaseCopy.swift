internal import Foundation
internal import GRDB
package import KedgeFiles
internal import KedgeMigrations

/// The reasons why a data directory's rows cannot be inspected.
package enum DatabaseCopyError: Error, Hashable, Sendable {
    /// There is no database.
    case missing
    /// The schema differs from the program's; the service or `kedge migrate` updates it.
    case otherSchema(found: Int, known: Int)
    /// The damage is so severe that SQLite does not open the database.
    case damaged
}

/// A copy of a database, to inspect it without touching the original.
///
/// SQLite cannot read a database in WAL mode without changing its directory: opening creates side
/// files, and closing moves the log into the database. The copy includes the log. It takes as much
/// space in the temporary directory, and is removed at the end.
package final class DatabaseCopy: Sendable {
    /// The opened copy.
    package let store: SQLiteStore
    private let directory: String
    private let pool: BlockingPool

    private init(store: SQLiteStore, directory: String, pool: BlockingPool) {
        self.store = store
        self.directory = directory
        self.pool = pool
    }

    /// Copies and opens a database. No other process may use the original meanwhile.
    ///
    /// - Throws: ``DatabaseCopyError``, or an error of the file system or SQLite.
    package static func make(
        of path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem()
    ) async throws -> DatabaseCopy {
        let (directory, queue) = try await pool.run {
            guard try fileSystem.status(of: path) != nil else { throw DatabaseCopyError.missing }
            let directory = try makeDirectory()
            do {
                let target = directory + "/kedge.sqlite"
                // The log, or the journal of a database that was never in WAL mode.
                for suffix in ["", "-wal", "-journal"] {
                    try copy(path + suffix, to: target + suffix, in: fileSystem)
                }
                return (directory, try open(target))
            } catch {
                // The first error matters; leftovers are in the temporary directory.
                try? FileManager.default.removeItem(atPath: directory)
                throw error
            }
        }
        // After a fatal failure every later operation on the copy fails with the same error.
        let commits = GroupCommit(queue: queue, onFatal: { _ in })
        return DatabaseCopy(
            store: SQLiteStore(queue: queue, pool: pool, commits: commits), directory: directory,
            pool: pool)
    }

    /// Closes and removes the copy.
    package func close() async {
        // The copy is not needed any more, so errors do not matter. Leftovers are in the temporary
        // directory, which the system clears.
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

    /// Copies a file in pieces of 1 MiB; an absent one is not an error.
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

    /// Throws ``DatabaseCopyError/otherSchema(found:known:)`` unless the schema is the program's.
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
