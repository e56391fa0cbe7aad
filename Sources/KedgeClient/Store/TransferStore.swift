package import GRDB
internal import KedgeFiles
internal import KedgeLocks
package import KedgeMigrations
internal import KedgeModel

/// The durable records of all transfers of one user: one SQLite file that several kedge processes
/// share.
///
/// Every method is one transaction that is on stable storage when it returns, except
/// ``notePartial(_:ofChunk:of:)``. Calls run on a thread of the store's own. Canceling the task
/// does not interrupt them: a worker's progress is saved even while it is being stopped.
package final class TransferStore: Sendable {
    private let queue: DatabaseQueue
    private let isClosed = Mutex(false)
    private let pool: BlockingPool
    let now: @Sendable () -> Timestamp
    let owners: OwnerRegistry

    /// Opens the file and brings the schema up to date. Creates the file and its directory if
    /// absent (modes 0600 and 0700).
    ///
    /// - Throws: `STORE_DAMAGED` if the file cannot be used, or was written by a newer kedge.
    package static func open(
        path: String, environment: ClientEnvironment
    ) async throws -> TransferStore {
        let (files, now) = (environment.files, environment.now)
        let pool = environment.makePool(1)
        return try await pool.run {
            do {
                let queue = try DatabaseFile.open(at: path, in: files)
                try migrations.migrate(queue, now: now())
                try forgetSecrets(queue)
                let owners = OwnerRegistry(
                    directory: TempFile.directory(of: path) + "/owners", files: files)
                return TransferStore(queue: queue, pool: pool, now: now, owners: owners)
            } catch {
                throw storeError("open", error)
            }
        }
    }

    /// The schema of the records.
    package static let migrations = MigrationRunner(
        EmbeddedMigrations.all.map { Migration(number: $0.number, name: $0.name, sql: $0.sql) })

    private init(
        queue: DatabaseQueue, pool: BlockingPool, now: @escaping @Sendable () -> Timestamp,
        owners: OwnerRegistry
    ) {
        self.pool = pool
        self.queue = queue
        self.now = now
        self.owners = owners
    }

    /// Creates an owner of leases for one client.
    package func makeOwner() async throws -> LeaseOwner {
        let owners = owners
        return try await pool.run {
            do {
                return try owners.register()
            } catch {
                throw Self.storeError("register owner", error)
            }
        }
    }

    /// Runs the closure in one transaction; durable when this returns.
    package func transaction<Result: Sendable>(
        _ operation: String, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        let queue = queue
        return try await pool.run {
            do {
                return try self.use { try queue.write(body) }
            } catch {
                throw Self.storeError(operation, error)
            }
        }
    }

    /// Runs a closure with one statement. Its commit survives the end of the process, but a power
    /// cut may revert it.
    func unsynced(
        _ operation: String, _ body: @escaping @Sendable (Database) throws -> Void
    ) async throws {
        let queue = queue
        try await pool.run {
            do {
                try self.use { try queue.writeUnsynced(body) }
            } catch {
                throw Self.storeError(operation, error)
            }
        }
    }

    /// Runs the closure on one snapshot of the data.
    package func reading<Result: Sendable>(
        _ operation: String, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        let queue = queue
        return try await pool.run {
            do {
                return try self.use { try queue.read(body) }
            } catch {
                throw Self.storeError(operation, error)
            }
        }
    }

    /// Closes the file; further calls fail.
    package func close() async throws {
        let queue = queue
        try await pool.run {
            do {
                try self.isClosed.withLock { isClosed in
                    try queue.close()
                    isClosed = true
                }
            } catch {
                throw Self.storeError("close", error)
            }
        }
    }

    /// Runs one access, unless the store is closed: GRDB crashes on a closed connection, and an app
    /// may request a snapshot while it closes. The queue serializes accesses anyway.
    private func use<Result: Sendable>(_ access: () throws -> Result) throws -> Result {
        try isClosed.withLock { isClosed in
            guard !isClosed else {
                throw TransferError(
                    .storeDamaged, operation: "use the store",
                    explanation: "The transfer client is closed.")
            }
            return try access()
        }
    }

    /// Gives every failure of the store a code; an error that has one passes through.
    private static func storeError(_ operation: String, _ error: any Error) -> any Error {
        switch error {
        case is TransferError, is RunInterruption:
            return error
        case let error as IllegalTransition:
            return TransferError(
                .illegalTransition, operation: operation,
                explanation: "A transfer that is \(error.state.rawValue) does not allow this.",
                cause: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            return TransferError(.diskFull, operation: "store: \(operation)", cause: error)
        case let error as MigrationError:
            return TransferError(
                .storeDamaged, operation: "store: \(operation)",
                explanation: "The transfer records were written by another version of kedge.",
                cause: error)
        case let error as FileError:
            return TransferError(error, operation: "store: \(operation)", role: .transferRecords)
        default:
            return TransferError(.storeDamaged, operation: "store: \(operation)", cause: error)
        }
    }
}
