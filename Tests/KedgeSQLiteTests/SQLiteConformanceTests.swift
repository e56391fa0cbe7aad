import KedgeEngine
import KedgeTesting
import Testing

struct SQLiteConformanceTests {
    @Test(.timeLimit(.minutes(1)), arguments: MetadataStoreConformance.all)
    func `the SQLite store keeps each promise of a metadata store`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        let fixture = try SQLiteEnvironment()
        try await promise.run { try await fixture.open() }
    }
}
