import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeTesting
import Logging

/// A machine in memory: a disk and the rows of a database.
struct SimulatedMachine: Sendable {
    let disk: SimulatedDisk
    let metadata: SimulatedMetadata

    init(
        disk: SimulatedDisk = SimulatedDisk(), metadata: SimulatedMetadata = SimulatedMetadata()
    ) {
        self.disk = disk
        self.metadata = metadata
    }

    /// Opens the stores, recovers, and starts an engine.
    func start() async throws -> SimulatedNode {
        let pool = BlockingPool(threadCount: 2)
        let bytes = try await DiskStore.open(
            "/data", pool: pool, fileSystem: disk, reserveByteCount: 0)
        let clock = ManualClock()
        let engine = TransferEngine(
            metadata: metadata, bytes: bytes, configuration: .small, clock: clock,
            timer: ManualTimer(), pool: pool,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        do {
            try await engine.recover()
        } catch {
            await bytes.close()
            throw error
        }
        return SimulatedNode(engine: engine, bytes: bytes, clock: clock, machine: self)
    }

    /// A copy of the machine for another run from here, without a cut.
    func copy(mutation: SimulatedDisk.Mutation? = nil) -> SimulatedMachine {
        SimulatedMachine(
            disk: SimulatedDisk(disk.image, mutation: mutation), metadata: metadata.survivor)
    }

    /// The machine after a power cut at this moment.
    func surviving(_ cut: Cut) -> SimulatedMachine {
        // The disk first: a row that is written after its image refers to bytes that were there
        // before.
        let image = disk.image
        return SimulatedMachine(
            disk: SimulatedDisk(image.surviving(cut)), metadata: metadata.survivor)
    }
}

/// An engine that runs on a simulated machine.
struct SimulatedNode: EngineHolder {
    let engine: TransferEngine
    let bytes: DiskStore
    let clock: ManualClock
    let machine: SimulatedMachine

    /// Lets idle sessions leave memory and closes the disk store.
    func close() async throws {
        clock.advance(by: .seconds(3600))
        try await engine.sweep()
        await bytes.close()
    }
}
