internal import KedgeEngine
package import KedgeFiles
internal import KedgeLocks
package import KedgeModel

/// Remembers sessions, chunks and files in one PostgreSQL database that any number of nodes share.
///
/// Every operation is one transaction, or one statement that may run twice; see ``DatabaseLink``.
/// It works behind a pooler in transaction mode. Nothing here blocks the caller's thread.
package final class PostgresStore: FleetMetadataStore {
    private let pool: PostgresPool
    private let clock: DatabaseClock
    /// Nil where notifications do not arrive.
    private let listener: HintListener?

    private init(pool: PostgresPool, clock: DatabaseClock, listener: HintListener?) {
        self.pool = pool
        self.clock = clock
        self.listener = listener
    }

    /// Connects, checks that the server keeps what it acknowledges, and brings the schema up to
    /// date. Several nodes may do that at once.
    ///
    /// - Parameters:
    ///   - url: See ``ConnectionString/init(_:)``.
    ///   - onNotice: Told of trouble that was dealt with, for the log; called on any thread.
    /// - Throws: ``PostgresStoreError``, or ``MetadataError``: `unavailable` while there is no
    ///   server.
    package static func open(
        url: String, configuration: PostgresConfiguration = PostgresConfiguration(),
        onNotice: @escaping @Sendable (String) -> Void
    ) async throws -> PostgresStore {
        let string = try ConnectionString(url)
        let clock = DatabaseClock()
        let pool = try PostgresPool(
            string, configuration: configuration, clock: clock, onNotice: onNotice)
        do {
            try await pool.run { link, deadline in
                try ServerCheck.run(on: link.connected(until: deadline), string)
                try SchemaMigrations.ours.migrate(link, patience: configuration.migrationPatience)
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
            ? HintListener(string, configuration: configuration, onNotice: onNotice) : nil
        return PostgresStore(pool: pool, clock: clock, listener: listener)
    }

    package var databaseClock: any WallClock { clock }

    package func hints() -> AsyncStream<SessionID> {
        listener?.hints() ?? AsyncStream { $0.finish() }
    }

    package func checkHealth() async throws {
        // Makes the transaction a real commit, flushed like any other, that changes no table.
        try await write { db in
            _ = try db.query("SELECT pg_logical_emit_message(true, 'kedge', '')::text")
        }
    }

    package func close() async throws {
        listener?.stop()
        await pool.close()
    }

    /// Runs statements that each are a transaction of their own and may safely run twice: looking,
    /// and changes that find themselves done already.
    func single<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform { link, deadline in try link.single(until: deadline, body) }
    }

    /// Runs the body in one transaction; see ``DatabaseLink/write(until:retryingDuplicatesOf:_:)``.
    func write<Value: Sendable>(
        retryingDuplicatesOf constraint: String? = nil,
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform { link, deadline in
            try link.write(until: deadline, retryingDuplicatesOf: constraint, body)
        }
    }

    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable (DatabaseLink, Deadline) throws -> Value
    ) async throws(MetadataError) -> Value {
        do {
            return try await pool.run(body)
        } catch {
            throw MetadataError(error)
        }
    }
}
