import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeSQLite
import KedgeServer
import KedgeTesting
import Testing

extension ServerEnvironment {
    /// The unfinished sessions in the database, oldest first. No server may run meanwhile.
    func openSessions() async throws -> [SessionID] {
        let store = try await SQLiteStore.open(
            at: configuration.dataDirectory + "/kedge.sqlite", now: clock.now(),
            pool: BlockingPool(threadCount: 1)
        ) { Issue.record("the database failed for good: \($0)") }
        let sessions = try await store.unfinishedSessions()
        try await store.close()
        return sessions.map(\.record.id)
    }
}
