import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeSQLite
import KedgeServer
import Testing

extension ServerPlace {
    /// The sessions that are not over, oldest first, as the rows tell when no server runs.
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
