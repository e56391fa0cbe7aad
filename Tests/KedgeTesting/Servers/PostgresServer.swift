internal import KedgeLocks

/// PostgreSQL on a directory and a port of its own. It ends with its last reference, and with this
/// process.
package final class PostgresServer: Sendable {
    private struct About: Decodable, Sendable {
        var url: String
        var port: UInt16
    }

    private struct Command: Encodable, Sendable {
        var command: String
        var sql: String?
        var database: String?
    }

    private let host: ServerHost
    private let about: About

    /// The address of its first database, `postgresql://…/kedge`.
    package var url: String { about.url }
    /// Its port on 127.0.0.1.
    package var port: UInt16 { about.port }

    private init(host: ServerHost, about: About) {
        self.host = host
        self.about = about
    }

    /// Starts a server with `fsync` and `synchronous_commit` on.
    ///
    /// - Parameter settings: Further or changed settings: `["synchronous_commit": "off"]`.
    /// - Throws: ``TestFailure``.
    package static func start(settings: [String: String] = [:]) async throws -> PostgresServer {
        let (host, about) = try await ServerHost.start(
            "postgres", options: ["settings": settings], about: About.self)
        return PostgresServer(host: host, about: about)
    }

    private static let sharing = Mutex<Task<PostgresServer, any Error>?>(nil)

    /// The server that all tests of this process share, each with its own database. It ends with
    /// the process. A test that kills a server starts its own.
    ///
    /// - Throws: ``TestFailure``.
    package static func shared() async throws -> PostgresServer {
        let task = sharing.withLock { task in
            if let task { return task }
            // Every caller awaits this task. The first caller's cancellation must not fail the
            // others.
            let new = Task { try await start() }
            task = new
            return new
        }
        return try await task.value
    }

    /// Creates an empty database and returns its address.
    package func makeDatabase() async throws -> String {
        try await host.ask(Command(command: "makeDatabase"))
    }

    /// Runs statements with psql and returns its output: a line for each row, `|` between columns.
    ///
    /// - Parameter database: The name or address of a database; nil for the first one.
    /// - Throws: ``TestFailure`` with psql's error.
    @discardableResult
    package func query(_ sql: String, in database: String? = nil) async throws -> String {
        try await host.ask(Command(command: "query", sql: sql, database: database ?? "kedge"))
    }

    /// Kills all its processes at once, as a crash does. Its data stay for ``restart()``.
    package func kill() async throws {
        try await host.tell(Command(command: "kill"))
    }

    /// Starts it again with its data and port, after stopping it if it runs.
    package func restart() async throws {
        try await host.tell(Command(command: "restart"))
    }

    /// Stops it and removes its data.
    package func stop() async { await host.stop() }
}

/// pgbouncer in transaction mode with default settings, in front of a PostgreSQL.
package final class PgBouncer: Sendable {
    private struct About: Decodable, Sendable {
        var port: UInt16
    }

    private let host: ServerHost
    private let about: About

    /// Its port on 127.0.0.1.
    package var port: UInt16 { about.port }

    private init(host: ServerHost, about: About) {
        self.host = host
        self.about = about
    }

    /// Starts it.
    ///
    /// - Throws: ``TestFailure``.
    package static func start(inFrontOf server: PostgresServer) async throws -> PgBouncer {
        let (host, about) = try await ServerHost.start(
            "pgbouncer", options: ["port": server.port], about: About.self)
        return PgBouncer(host: host, about: about)
    }

    /// The address of a database through it.
    ///
    /// - Parameter database: The database's name, or its own address.
    package func url(_ database: String = "kedge") -> String {
        let name = database.split(separator: "/").last ?? "kedge"
        return "postgresql://kedge@127.0.0.1:\(port)/\(name)"
    }

    /// Stops it.
    package func stop() async { await host.stop() }
}
