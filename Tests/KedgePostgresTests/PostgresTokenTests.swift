import KedgeTesting
import Testing

struct PostgresTokenTests {
    @Test(.timeLimit(.minutes(2)), arguments: TokenStoreConformance.all)
    func `the PostgreSQL store keeps each promise of a token store`(
        _ promise: TokenStoreConformance.Case
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        try await promise.run { try await openStore(url) }
    }
}
