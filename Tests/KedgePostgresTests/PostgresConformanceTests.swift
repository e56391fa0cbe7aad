import KedgeTesting
import Testing

struct PostgresConformanceTests {
    @Test(.timeLimit(.minutes(2)), arguments: MetadataStoreConformance.all)
    func `the PostgreSQL store keeps each promise of the conformance suite`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        try await promise.run { try await openStore(url) }
    }

    @Test(.timeLimit(.minutes(10)))
    func `the PostgreSQL store keeps all promises behind a pooler in transaction mode`()
        async throws
    {
        let server = try await PostgresServer.shared()
        let pooler = try await PgBouncer.start(inFrontOf: server)
        for promise in MetadataStoreConformance.all {
            let url = pooler.url(try await server.makeDatabase())
            // Notifications need a direct connection to the server.
            try await promise.run { try await openStore(url + "?listen=off&pool_size=3") }
        }
        await pooler.stop()
    }
}
