package import KedgeEngine
package import KedgeFiles
internal import KedgeLocks
package import KedgeMetrics
package import KedgeModel

/// Stores sessions, chunks and files in one PostgreSQL database, shared by any number of nodes.
///
/// Every operation is one transaction, or one idempotent statement; see ``ReconnectingConnection``.
/// The store works behind a pooler in transaction mode. It never blocks the caller's thread.
package final class PostgresStore: FleetMetadataStore {
    private let pool: PostgresPool
    private let clock: DatabaseClock
    /// Nil where notifications do not arrive.
    let listener: ChangeListener?
    private let metrics: Metrics
    private let ownerQueue: OwnerQueue

    private init(
        pool: PostgresPool, clock: DatabaseClock, listener: ChangeListener?, metrics: Metrics,
        ownerQueue: OwnerQueue
    ) {
        self.ownerQueue = ownerQueue
        self.pool = pool
        self.clock = clock
        self.listener = listener
        self.metrics = metrics
    }

    /// Connects, checks that the server keeps acknowledged writes, and migrates the schema. Several
    /// nodes may do so at once.
    ///
    /// - Parameters:
    ///   - url: See ``ConnectionString/init(_:)``.
    ///   - metrics: Gets the time of each operation.
    ///   - onNotice: Receives handled failures for the log; called on any thread.
    /// - Throws: ``PostgresStoreError``, or ``MetadataError``: `unavailable` if the server cannot
    ///   be reached.
    package static func open(
        url: String, configuration: PostgresConfiguration = PostgresConfiguration(),
        metrics: Metrics = Metrics(), onNotice: @escaping @Sendable (String) -> Void
    ) async throws -> PostgresStore {
        let string = try ConnectionString(url)
        let clock = DatabaseClock()
        let pool = try PostgresPool(
            string, configuration: configuration, clock: clock, metrics: metrics,
            onNotice: onNotice)
        do {
            try await pool.run { link, deadline in
                try ServerCheck.run(on: link.connected(until: deadline), string)
                try SchemaMigrations.ours.migrate(link, timeout: configuration.migrationTimeout)
            }
        } catch let error as PostgresStoreError {
            await pool.close()
            throw error
        } catch {
            await pool.close()
            throw MetadataError(error)
        }
        let listener =
            string.listens
            ? ChangeListener(string, configuration: configuration, onNotice: onNotice) : nil
        return PostgresStore(
            pool: pool, clock: clock, listener: listener, metrics: metrics,
            ownerQueue: OwnerQueue(
                waitingLimit: configuration.waitingLimit, timeout: configuration.timeout))
    }

    package var databaseClock: any WallClock { clock }

    package func changeNotifications() -> AsyncStream<SessionID> {
        listener?.changeNotifications() ?? AsyncStream { $0.finish() }
    }

    package func rowCounts() async throws -> RowCounts {
        try await single { db in
            var row = try db.query(
                """
                SELECT (SELECT count(*) FROM session WHERE state = 'open'),
                    (SELECT count(*) FROM session WHERE state = 'finalizing'),
                    (SELECT count(*) FROM garbage)
                """
            ).firstRow
            return RowCounts(
                openSessions: Int(try row?.integer() ?? 0),
                finalizingSessions: Int(try row?.integer() ?? 0),
                garbage: Int(try row?.integer() ?? 0))
        }
    }

    package func checkHealth() async throws {
        // Makes the transaction a real commit, flushed like any other, without changing a table.
        try await write { db in
            _ = try db.query("SELECT pg_logical_emit_message(true, 'kedge', '')::text")
        }
    }

    package func close() async throws {
        listener?.stop()
        await pool.close()
    }

    /// Runs statements that each are their own transaction and idempotent: reads, and changes that
    /// find themselves done.
    func single<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform("read") { link, deadline in try link.single(until: deadline, body) }
    }

    /// Runs the body in one transaction, on a ``ReconnectingConnection``.
    package func write<Value: Sendable>(
        retryingDuplicatesOf constraint: String? = nil,
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform("write") { link, deadline in
            try link.write(until: deadline, retryingDuplicatesOf: constraint, body)
        }
    }

    /// Runs the body in one transaction that changes the sums of an owner.
    func write<Value: Sendable>(
        of owner: OwnerID, retryingDuplicatesOf constraint: String? = nil,
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await ownerQueue.enter(owner)
        do throws(MetadataError) {
            let value = try await write(retryingDuplicatesOf: constraint, body)
            await ownerQueue.leave(owner)
            return value
        } catch {
            await ownerQueue.leave(owner)
            throw error
        }
    }

    private func perform<Value: Sendable>(
        _ operation: String,
        _ body: @escaping @Sendable (ReconnectingConnection, Deadline) throws -> Value
    ) async throws(MetadataError) -> Value {
        let start = ContinuousClock.now
        defer {
            metrics.observe(.storeOperationSeconds, since: start, ["postgres", operation])
        }
        do {
            return try await pool.run(body)
        } catch {
            throw MetadataError(error)
        }
    }
}
