import KedgeTesting
import Testing

struct SQLiteLinkTests {
    @Test(.timeLimit(.minutes(1)), arguments: LinkStoreConformance.all)
    func `the SQLite store keeps each promise of a link store`(
        _ promise: LinkStoreConformance.Case
    ) async throws {
        let fixture = try SQLiteEnvironment()
        try await promise.run { try await fixture.open() }
    }
}
