import KedgeEngine
import KedgeTesting
import Testing

struct SQLiteConformanceTests {
    @Test(.timeLimit(.minutes(1)), arguments: MetadataStoreConformance.all)
    func `the SQLite store keeps each promise of a metadata store`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        let place = try SQLitePlace()
        try await promise.run { try await place.open() }
    }
}
