import GRDB
import KedgeFiles
import KedgeMigrations
import KedgeTesting
import Testing

struct DatabaseFileTests {
    @Test(arguments: [
        ("synchronous", "2"), ("journal_mode", "wal"), ("foreign_keys", "1"),
        ("mmap_size", "0"), ("busy_timeout", "5000"), ("trusted_schema", "0"),
    ])
    func `every setting is in force after each opening`(
        _ setting: String, _ value: String
    ) throws {
        let fixture = try SQLiteEnvironment()
        for _ in 0..<2 {
            try fixture.withQueue { queue in
                let found = try queue.read { try String.fetchOne($0, sql: "PRAGMA \(setting)") }
                #expect(found == value)
            }
        }
    }

    @Test func `commits are synced unless durability is off, for this opening alone`() throws {
        let fixture = try SQLiteEnvironment()
        for (durability, value) in [(.off, "0"), (.on, "2")] as [(Durability, String)] {
            let queue = try DatabaseFile.open(at: fixture.path, durability: durability)
            let found = try queue.read { try String.fetchOne($0, sql: "PRAGMA synchronous") }
            #expect(found == value)
            try queue.close()
        }
    }

    @Test func `only the owner may read the database and its side files`() throws {
        let fixture = try SQLiteEnvironment()
        try fixture.withQueue { _ in
            for suffix in ["", "-wal", "-shm"] {
                #expect(TemporaryDirectory.mode(of: fixture.path + suffix) == 0o600)
            }
            #expect(TemporaryDirectory.mode(of: fixture.directory.path + "/state") == 0o700)
        }
    }

    @Test func `a file that is no database is refused`() throws {
        let fixture = try SQLiteEnvironment()
        try fixture.withQueue { _ in }
        try Damage.overwrite(fixture.path, at: 0, with: "not a database at all")
        #expect(throws: DatabaseError.self) { try fixture.openQueue() }
    }
}
