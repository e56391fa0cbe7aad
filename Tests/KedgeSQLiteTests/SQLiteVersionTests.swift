import KedgeSQLite
import Testing

struct SQLiteVersionTests {
    @Test(arguments: ["3.40.1", "3.40.2", "3.41.0", "3.51.3", "3.100", "4.0.0"])
    func `a version that is not older than the oldest tested one is accepted`(text: String) throws {
        try SQLiteVersion.requireTested(text)
    }

    @Test(arguments: ["3.40.0", "3.40", "3.39.5", "3.7.17", "2.8.17", "", "x", "3.x.1"])
    func `an older or malformed version is refused`(text: String) {
        #expect(throws: UntestedSQLiteError(version: text)) {
            try SQLiteVersion.requireTested(text)
        }
    }

    @Test func `the SQLite library of this machine is accepted`() throws {
        try SQLiteVersion.requireTested()
    }
}
