import KedgeEngine
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

struct SimulatedMetadataTests {
    @Test(.timeLimit(.minutes(1)), arguments: MetadataStoreConformance.all)
    func `the simulated store keeps each promise of a metadata store`(
        _ promise: MetadataStoreConformance.Case
    ) async throws {
        // Each opening finds the rows that a power cut left: a committed transaction is durable.
        let metadata = Mutex(SimulatedMetadata())
        try await promise.run {
            metadata.withLock { metadata in
                metadata = metadata.cut()
                return metadata
            }
        }
    }

    @Test func `a power cut keeps committed rows and ends the store`() async throws {
        let metadata = SimulatedMetadata()
        let record = try await metadata.make()
        let survivor = metadata.cut()
        #expect(try await survivor.now(record)?.record == record)
        await #expect(throws: MetadataError.self) { try await metadata.now(record) }
    }

    @Test func `rows that are durable later are lost in a power cut`() async throws {
        let metadata = SimulatedMetadata(durability: .late(transactions: 1))
        let first = try await metadata.make()
        let second = try await metadata.make(Sample.session())
        let survivor = metadata.cut()
        #expect(try await survivor.now(first) != nil)
        #expect(try await survivor.now(second) == nil)
    }

    @Test(arguments: [SimulatedMetadata.FailureMoment.before, .after])
    func `a planned failure comes once, before or after the commit`(
        moment: SimulatedMetadata.FailureMoment
    ) async throws {
        let metadata = SimulatedMetadata()
        metadata.fail(after: 0, moment)
        let record = Sample.session()
        await #expect(throws: MetadataError.self) { try await metadata.make(record) }
        #expect(metadata.hasFailed)
        #expect(try await metadata.now(record) == nil || moment == .after)
        #expect(metadata.transactionCount == (moment == .after ? 1 : 0))
        _ = try await metadata.make(Sample.session())
    }
}
