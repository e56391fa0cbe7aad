import GRDB
import KedgeMigrations
import KedgeTesting
import Testing

struct MigrationRunnerTests {
    private let first = Migration(number: 1, name: "first", sql: "CREATE TABLE a (b TEXT) STRICT;")
    private let second = Migration(number: 2, name: "second", sql: "INSERT INTO a VALUES ('x');")

    @Test func `each migration is applied once`() throws {
        try SQLiteEnvironment().withQueue(isMigrated: false) { (queue) throws in
            let runner = MigrationRunner([first])
            #expect(try runner.migrate(queue, now: Sample.time(1)) == [first])
            #expect(try runner.migrate(queue, now: Sample.time(2)) == [])
            let longer = MigrationRunner([first, second])
            #expect(try longer.migrate(queue, now: Sample.time(3)) == [second])
            #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM a") } == 1)
        }
    }

    @Test func `a newer schema is refused and left as it is`() throws {
        try SQLiteEnvironment().withQueue(isMigrated: false) { (queue) throws in
            try MigrationRunner([first, second]).migrate(queue, now: Sample.time(1))
            #expect(throws: MigrationError.newerSchema(found: 2, known: 1)) {
                try MigrationRunner([first]).migrate(queue, now: Sample.time(2))
            }
            #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM a") } == 1)
        }
    }

    @Test func `a migration that was edited after its release is refused`() throws {
        try SQLiteEnvironment().withQueue(isMigrated: false) { (queue) throws in
            try MigrationRunner([first]).migrate(queue, now: Sample.time(1))
            let edited = Migration(number: 1, name: "first", sql: first.sql + " -- better")
            #expect(throws: MigrationError.edited(number: 1, name: "first")) {
                try MigrationRunner([edited, second]).migrate(queue, now: Sample.time(2))
            }
        }
    }

    @Test func `a migration that fails leaves nothing of itself behind`() throws {
        try SQLiteEnvironment().withQueue(isMigrated: false) { (queue) throws in
            let broken = Migration(
                number: 2, name: "broken", sql: "CREATE TABLE c (d TEXT) STRICT; SELECT nonsense;")
            #expect(throws: DatabaseError.self) {
                try MigrationRunner([first, broken]).migrate(queue, now: Sample.time(1))
            }
            #expect(try queue.read { try $0.tableExists("a") })
            #expect(try queue.read { try !$0.tableExists("c") })
            #expect(
                try MigrationRunner([first, second]).migrate(queue, now: Sample.time(1)) == [second]
            )
        }
    }
}
