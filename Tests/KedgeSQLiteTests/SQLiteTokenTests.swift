import KedgeTesting
import Testing

struct SQLiteTokenTests {
    @Test(.timeLimit(.minutes(1)), arguments: TokenStoreConformance.all)
    func `the SQLite store keeps each promise of a token store`(
        _ promise: TokenStoreConformance.Case
    ) async throws {
        let fixture = try SQLiteEnvironment()
        try await promise.run { try await fixture.open() }
    }
}
