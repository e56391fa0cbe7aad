import KedgeEngine
import KedgeTesting
import Testing

@Suite struct `SQLite conformance` {
    @Test(.timeLimit(.minutes(1)), arguments: MetadataStoreConformance.all)
    func `the SQLite store keeps its promise`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        let place = try SQLitePlace()
        try await promise.run { try await place.open() }
    }
}
