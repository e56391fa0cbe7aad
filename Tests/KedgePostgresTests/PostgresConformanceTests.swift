import KedgeTesting
import Testing

@Suite struct `PostgreSQL conformance` {
    @Test(.timeLimit(.minutes(2)), arguments: MetadataStoreConformance.all)
    func `the PostgreSQL store keeps its promise`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        try await promise.run { try await openStore(url) }
    }

    @Test(.timeLimit(.minutes(5)))
    func `behind a pooler in transaction mode it keeps all of them, too`() async throws {
        let server = try await PostgresServer.shared()
        let pooler = try await PgBouncer.start(inFrontOf: server)
        for promise in MetadataStoreConformance.all {
            let url = pooler.url(try await server.makeDatabase())
            // Notifications need a connection of the server's own.
            try await promise.run { try await openStore(url + "?listen=off&pool_size=3") }
        }
        await pooler.stop()
    }
}
