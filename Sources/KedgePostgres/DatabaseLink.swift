internal import Glibc
internal import KedgeEngine

/// One thread's way to the database: a connection that is made when it is needed, checked before it
/// is used, and replaced when it broke.
final class DatabaseLink {
    let configuration: PostgresConfiguration
    let clock: DatabaseClock
    private let parameters: [(keyword: String, value: String)]
    private let onNotice: @Sendable (String) -> Void
    private var connection: PostgresConnection?
    /// Name of the server's present life, as this connection found it; see `server_life`.
    private var lifeName: String?

    init(
        _ string: ConnectionString, configuration: PostgresConfiguration, clock: DatabaseClock,
        onNotice: @escaping @Sendable (String) -> Void
    ) {
        parameters = string.parameters
        self.configuration = configuration
        self.clock = clock
        self.onNotice = onNotice
    }

    /// A connection that worked a moment ago. While the database is away it is looked for until the
    /// deadline, in growing steps of random length, so that nodes do not come back all at once.
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

    /// Lets go of the connection; the next operation makes another one.
    func disconnect() {
        connection = nil
        lifeName = nil
    }

    /// The name of the server's life in which what follows on this connection happens; it is asked
    /// for once, so that it is never later than that.
    func life(of connection: PostgresConnection) throws -> String? {
        if lifeName == nil { lifeName = try Self.currentLife(connection) }
        return lifeName
    }

    /// Asks for the name of the server's life, and gives it one after a crash. Nil when another
    /// node does that at the same moment.
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

    /// Waits before the next try, half of the time at least.
    func pause(upTo delay: Duration) {
        let milliseconds = max(2, delay.milliseconds)
        usleep(UInt32(Int64.random(in: milliseconds / 2...milliseconds)) * 1000)
    }

    /// Tells the log about a failure that was dealt with.
    func note(_ failure: PostgresFailure) { onNotice(failure.text) }

    private func refresh(_ connection: PostgresConnection) throws {
        // Behind a pooler this connection outlives the server's; then the name is another one now.
        lifeName = nil
        try clock.refresh(from: connection)
    }
}

extension PostgresFailure {
    /// What a failure to connect is: whatever the server's reason, nothing was done yet.
    fileprivate var asUnavailable: MetadataError { .unavailable(text) }
}
