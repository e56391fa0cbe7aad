internal import Glibc
internal import KedgeEngine
internal import KedgeMetrics

/// One thread's connection to the database. It is made on demand, checked before each use, and
/// replaced after a failure.
final class ReconnectingConnection {
    let configuration: PostgresConfiguration
    let clock: DatabaseClock
    private let parameters: [(keyword: String, value: String)]
    private let metrics: Metrics
    private let onNotice: @Sendable (String) -> Void
    private var connection: PostgresConnection?
    /// The name of the server's current life, as read on this connection; see the table
    /// `server_life`.
    private var lifeName: String?

    init(
        _ string: ConnectionString, configuration: PostgresConfiguration, clock: DatabaseClock,
        metrics: Metrics = Metrics(), onNotice: @escaping @Sendable (String) -> Void
    ) {
        parameters = string.parameters
        self.configuration = configuration
        self.clock = clock
        self.metrics = metrics
        self.onNotice = onNotice
    }

    /// Returns a connection that has just been checked. While the database is unavailable, retries
    /// until the deadline, with random, growing pauses so that nodes do not all reconnect at once.
    func connected(until deadline: Deadline) throws -> PostgresConnection {
        var delay = Duration.milliseconds(20)
        while true {
            do {
                if let connection, connection.isUsable {
                    if clock.isStale { try refresh(connection) }
                    return connection
                }
                disconnect()
                let new = try PostgresConnection(
                    parameters, answerTimeout: configuration.statementTimeout + .seconds(2))
                connection = new
                try refresh(new)
                return new
            } catch let failure as PostgresFailure {
                disconnect()
                guard deadline.remaining > delay else { throw failure.asUnavailable }
            }
            pause(upTo: delay)
            delay = min(delay * 2, .seconds(1))
        }
    }

    /// Closes the connection; the next operation makes a new one.
    func disconnect() {
        connection = nil
        lifeName = nil
    }

    /// Returns the name of the server's life in which the following statements run. It is read
    /// before them, so it is never newer.
    func life(of connection: PostgresConnection) throws -> String? {
        if lifeName == nil { lifeName = try Self.currentLife(connection) }
        return lifeName
    }

    /// Reads the name of the server's current life, and creates it after a crash. Nil when another
    /// node creates it at the same moment.
    static func currentLife(_ connection: PostgresConnection) throws -> String? {
        var row = try connection.query(
            """
            WITH made AS (
                INSERT INTO server_life (name) SELECT gen_random_uuid()::text
                WHERE NOT EXISTS (SELECT 1 FROM server_life)
                ON CONFLICT DO NOTHING RETURNING name)
            SELECT name FROM made UNION ALL SELECT name FROM server_life LIMIT 1
            """
        ).firstRow
        return row?.optionalText()
    }

    /// Waits before the next attempt, for at least half of the delay.
    func pause(upTo delay: Duration) {
        let milliseconds = max(2, delay.milliseconds)
        usleep(UInt32(Int64.random(in: milliseconds / 2...milliseconds)) * 1000)
    }

    /// Logs a failure that was handled.
    func note(_ failure: PostgresFailure) { onNotice(failure.text) }

    /// Logs a failure after which the operation runs again.
    func noteRetry(after failure: PostgresFailure) {
        metrics.increment(.storeRetries, ["postgres"])
        note(failure)
    }

    private func refresh(_ connection: PostgresConnection) throws {
        // Behind a pooler this connection outlives the server's, and then the name has changed.
        lifeName = nil
        try clock.refresh(from: connection)
    }
}

extension PostgresFailure {
    /// The error for a failed connection: nothing was done yet, so it is always `unavailable`.
    fileprivate var asUnavailable: MetadataError { .unavailable(text) }
}
