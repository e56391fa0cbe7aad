import KedgeTesting
import Testing

struct PostgresLinkTests {
    @Test(.timeLimit(.minutes(2)), arguments: LinkStoreConformance.all)
    func `the PostgreSQL store keeps each promise of a link store`(
        _ promise: LinkStoreConformance.Case
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        try await promise.run { try await openStore(url) }
    }
}
