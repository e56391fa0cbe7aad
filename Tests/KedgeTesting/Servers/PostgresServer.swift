internal import KedgeLocks

/// PostgreSQL on a directory and a port of its own. It ends with its last reference, and with this process.
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
    /// - Parameter settings: More for its configuration, or others: `["synchronous_commit": "off"]`.
    /// - Throws: ``ServersError``.
    package static func start(settings: [String: String] = [:]) async throws -> PostgresServer {
        let (host, about) = try await ServerHost.start(
            "postgres", options: ["settings": settings], about: About.self)
        return PostgresServer(host: host, about: about)
    }

    private static let sharing = Mutex<Task<PostgresServer, any Error>?>(nil)

    /// The server that all tests of this process share, each with a database of its own. Nobody stops it: it
    /// ends with the process. A test that kills it takes one of its own.
    ///
    /// - Throws: ``ServersError``.
    package static func shared() async throws -> PostgresServer {
        let task = sharing.withLock { task in
            if let task { return task }
            // Every caller awaits it; the first one's cancellation must not fail the others.
            let new = Task { try await start() }
            task = new
            return new
        }
        return try await task.value
    }

    /// The address of a new, empty database.
    package func makeDatabase() async throws -> String {
        try await host.ask(Command(command: "makeDatabase"))
    }

    /// What psql prints for statements: a line for each row, `|` between columns.
    ///
    /// - Parameter database: The name or address of a database; nil for the first one.
    /// - Throws: ``ServersError`` with psql's complaint.
    @discardableResult
    package func query(_ sql: String, in database: String? = nil) async throws -> String {
        try await host.ask(Command(command: "query", sql: sql, database: database ?? "kedge"))
    }

    /// What a crash does: all its processes are killed at once. Data stay; see ``restart()``.
    package func kill() async throws {
        try await host.tell(Command(command: "kill"))
    }

    /// Starts it again on its data and port, after ending it if it runs.
    package func restart() async throws {
        try await host.tell(Command(command: "restart"))
    }

    /// Ends it and removes its data.
    package func stop() async { await host.stop() }
}

/// pgbouncer in transaction mode, otherwise as it comes, in front of a PostgreSQL.
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
    /// - Throws: ``ServersError``.
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

    /// Ends it.
    package func stop() async { await host.stop() }
}
