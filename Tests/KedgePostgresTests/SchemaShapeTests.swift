import Foundation
import KedgeTesting
import Testing

/// The migrations of both databases make the same tables, except for columns that only a fleet
/// needs.
@Suite(.timeLimit(.minutes(1))) struct SchemaShapeTests {
    private struct Column: Hashable, CustomStringConvertible {
        var table: String
        var name: String
        var type: String
        var isRequired: Bool
        /// Position in the primary key, from 1; 0 when the column is not in it.
        var keyPosition: Int

        var description: String {
            "\(table).\(name) \(type)\(isRequired ? " NOT NULL" : "") key \(keyPosition)"
        }

        /// Parses a line of either shell.
        init(_ line: Substring, types: [String: String]) throws {
            let fields = line.split(separator: "|", omittingEmptySubsequences: false).map(
                String.init)
            try #require(fields.count == 5, "\(line)")
            (table, name) = (fields[0], fields[1])
            type = try #require(types[fields[2].lowercased()], "an unknown type: \(line)")
            keyPosition = try #require(Int(fields[4]))
            // A primary key is never NULL, although SQLite does not always declare that.
            isRequired = fields[3] == "1" || keyPosition > 0
        }
    }

    /// Columns that SQLite has no use for, with the reason.
    private static let onlyInFleets: Set<String> = [
        // Nodes ask for changes since their last read; a single process knows them.
        "session.revision", "session.reset_revision", "chunk.revision",
        // The writer that saved a partial, of several.
        "partial_chunk.writer", "partial_chunk.revision",
        "rival_partial.writer", "rival_partial.revision",
        // An index over a moving time costs every update of PostgreSQL, and none of SQLite.
        "session.expires_hour",
        // Writers on other nodes.
        "writer_lease.session_id", "writer_lease.idx", "writer_lease.token",
        "writer_lease.lease_until", "writer_lease.wanted",
        // Shows whether a lost connection was to the server that runs now.
        "server_life.id", "server_life.name",
    ]

    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../migrations").standardizedFileURL

    /// The migration files of one database, in the order of their numbers.
    private static func migrations(_ kind: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: directory.appendingPathComponent(kind), includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "sql" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
    }

    private static func sql(_ kind: String) throws -> String {
        try migrations(kind).map { try String(contentsOf: $0, encoding: .utf8) }
            .joined(separator: "\n")
    }

    /// Runs statements in the shell on a new, empty database and returns the output.
    private static func sqlite(_ sql: String) throws -> String {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        shell.arguments = ["sqlite3", "-batch", "-bail", ":memory:"]
        let (input, output) = (Pipe(), Pipe())
        (shell.standardInput, shell.standardOutput) = (input, output)
        try shell.run()
        // The shell prints nothing before it has read everything, so neither side waits for the
        // other.
        try input.fileHandleForWriting.write(contentsOf: Data(sql.utf8))
        try input.fileHandleForWriting.close()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        shell.waitUntilExit()
        try #require(shell.terminationStatus == 0, "sqlite3 refuses the migrations")
        return String(decoding: text, as: UTF8.self)
    }

    private static func columnsOfSQLite() throws -> [Column] {
        let question = """

            SELECT m.name, c.name, c.type, c."notnull", c.pk
            FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table';
            """
        let types = ["integer": "number", "text": "text", "blob": "bytes"]
        return try sqlite(sql("sqlite") + question).split(separator: "\n")
            .map { try Column($0, types: types) }
    }

    private static func columnsOfPostgres() async throws -> [Column] {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        try await server.query(sql("postgres"), in: url)
        let question = """
            SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attnotnull::int,
                coalesce(array_position(k.conkey, a.attnum), 0)
            FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
                LEFT JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'p'
            WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
                AND a.attnum > 0 AND NOT a.attisdropped
            """
        // SQLite has no booleans: it stores a checked 1 where PostgreSQL stores true.
        let types = [
            "bigint": "number", "integer": "number", "boolean": "number", "text": "text",
            "bytea": "bytes",
        ]
        return try await server.query(question, in: url).split(separator: "\n")
            .map { try Column($0, types: types) }
    }

    @Test func `both databases have the same tables, columns and primary keys`() async throws {
        let small = Set(try Self.columnsOfSQLite())
        let all = try await Self.columnsOfPostgres()
        let extra = all.filter { Self.onlyInFleets.contains("\($0.table).\($0.name)") }
        #expect(extra.count == Self.onlyInFleets.count, "an exception without a column")
        let large = Set(all).subtracting(extra)
        #expect(small.count > 40)
        #expect(small.subtracting(large).map(\.description).sorted() == [])
        #expect(large.subtracting(small).map(\.description).sorted() == [])
    }

    @Test func `a migration of one database has its counterpart in the other`() throws {
        let names = try ["sqlite", "postgres"].map {
            try Self.migrations($0).map(\.lastPathComponent)
        }
        #expect(!names[0].isEmpty)
        #expect(names[0] == names[1])
    }
}
