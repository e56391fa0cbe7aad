import KedgeDisk
import KedgeEngine
import KedgeTesting
import Testing

struct DiskConformanceTests {
    @Test(.timeLimit(.minutes(1)), arguments: ByteStoreConformance.all)
    func `the disk store keeps each promise of a byte store`(_ promise: ByteStoreConformance.Case)
        async throws
    {
        let fixture = try DiskEnvironment()
        try await promise.run { try await fixture.open() }
    }

    @Test(.timeLimit(.minutes(1)), arguments: LocalByteStoreConformance.all)
    func `the disk store keeps each promise of a local byte store`(
        _ promise: LocalByteStoreConformance.Case
    ) async throws {
        let fixture = try DiskEnvironment()
        try await promise.run { try await fixture.open() }
    }

    @Test func `a directory keeps its identity, and another one has another`() async throws {
        let (fixture, other) = (try DiskEnvironment(), try DiskEnvironment())
        let store = try await fixture.open()
        let identity = try await store.identity()
        await store.close()
        let again = try await fixture.open()
        #expect(try await again.identity() == identity)
        await again.close()
        let foreign = try await other.open()
        #expect(try await foreign.identity() != identity)
        await foreign.close()
    }
}
