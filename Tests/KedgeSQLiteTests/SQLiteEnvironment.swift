import GRDB
import KedgeFiles
import KedgeLocks
import KedgeMigrations
import KedgeSQLite
import KedgeTesting

/// A test's own database file.
final class SQLiteEnvironment: Sendable {
    let directory: TemporaryDirectory
    private let pool = BlockingPool(threadCount: 2)
    private let fatalTexts = Mutex<[String]>([])

    init() throws { directory = try TemporaryDirectory() }

    var path: String { directory.path + "/state/kedge.sqlite" }

    /// Texts that the fatal handler was called with.
    var fatal: [String] { fatalTexts.withLock { $0 } }

    func open() async throws -> SQLiteStore {
        try await SQLiteStore.open(at: path, now: Sample.time(0), pool: pool) { [self] text in
            fatalTexts.withLock { $0.append(text) }
        }
    }

    /// Opens the database as the store does, for a test's own statements.
    func openQueue() throws -> DatabaseQueue {
        let queue = try DatabaseFile.open(at: path)
        try SQLiteStore.migrations.migrate(queue, now: Sample.time(0))
        return queue
    }

    /// Lends the database, with or without the store's schema, for the time of the closure.
    func withQueue(isMigrated: Bool = true, _ body: (DatabaseQueue) throws -> Void) throws {
        let queue = try isMigrated ? openQueue() : DatabaseFile.open(at: path)
        try body(queue)
        try queue.close()
    }

    /// A store over a queue that the test prepared, with commits that the test may fail.
    func store(
        over queue: DatabaseQueue,
        commit: @escaping @Sendable (Database) throws -> Void = { try $0.commit() }
    ) -> SQLiteStore {
        let commits = GroupCommit(
            queue: queue,
            onFatal: { [self] text in fatalTexts.withLock { $0.append(text) } }, commit: commit)
        return SQLiteStore(queue: queue, pool: pool, commits: commits)
    }
}
