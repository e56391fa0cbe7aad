import KedgeEngine
import KedgeStoreTests
import Testing

@Suite struct `Disk conformance` {
    @Test(.timeLimit(.minutes(1)), arguments: ByteStoreConformance.all)
    func `the disk store keeps its promise`(_ promise: ByteStoreConformance.Case) async throws {
        let place = try DiskPlace()
        try await promise.run { try await place.open() }
    }
}
