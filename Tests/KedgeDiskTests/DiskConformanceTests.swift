import KedgeDisk
import KedgeEngine
import KedgeTesting
import Testing

struct DiskConformanceTests {
    @Test(.timeLimit(.minutes(1)), arguments: ByteStoreConformance.all)
    func `the disk store keeps each promise of a byte store`(_ promise: ByteStoreConformance.Case)
        async throws
    {
        let place = try DiskPlace()
        try await promise.run { try await place.open() }
    }

    @Test(.timeLimit(.minutes(1)), arguments: LocalByteStoreConformance.all)
    func `the disk store keeps each promise of a local byte store`(
        _ promise: LocalByteStoreConformance.Case
    ) async throws {
        let place = try DiskPlace()
        try await promise.run { try await place.open() }
    }

    @Test func `a directory keeps its identity, and another one has another`() async throws {
        let (place, other) = (try DiskPlace(), try DiskPlace())
        let store = try await place.open()
        let identity = try await store.identity()
        await store.close()
        let again = try await place.open()
        #expect(try await again.identity() == identity)
        await again.close()
        let foreign = try await other.open()
        #expect(try await foreign.identity() != identity)
        await foreign.close()
    }
}
