import Glibc
import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R2, R114: a process does not take bytes for synced that an earlier one failed to sync.
@Suite(.timeLimit(.minutes(1))) struct RestartTests {
    private let pool = BlockingPool(threadCount: 2)
    private let content: [UInt8] = [1, 2, 3]

    private func open(_ disk: SimulatedDisk) async throws -> DiskStore {
        try await DiskStore.open("/new/data", pool: pool, fileSystem: disk, reserveByteCount: 0)
    }

    /// Makes a blob on an empty disk, as far as the disk lets it.
    private func makeBlob(on disk: SimulatedDisk, _ key: StagingKey) async throws {
        let store = try await open(disk)
        do {
            let digest = SHA256Hasher.digest(of: content)
            let area = try await store.openStaging(key)
            try await area.write(SampleBytes.buffer(content), at: 0)
            try await area.sync()
            await area.close()
            try await store.promote(key, to: digest, byteCount: 3)
        } catch {
            await store.close()
            throw error
        }
        await store.close()
    }

    /// The kernel takes a directory for clean after a failed sync, and goes on doing so when the
    /// process has ended (fsync(2)).
    @Test func `a directory whose sync failed in one process is made durable by the next`()
        async throws
    {
        for position in 0..<40 {
            let disk = SimulatedDisk()
            let key = StagingKey(SessionID.random())
            disk.plan(.init(after: position, of: .syncDirectory, with: EIO))
            do {
                try await makeBlob(on: disk, key)
            } catch {
                try await makeBlob(on: disk, key)
            }
            let image = disk.image.surviving(.losesAll)
            let blobs = image.paths.filter { $0.contains("/blobs/") }
            #expect(blobs.count == 1, "sync \(position)")
            #expect(blobs.allSatisfy { image.content(at: $0) == content }, "sync \(position)")
            if !disk.hasFailed { return }
        }
        Issue.record("it never ran without a failure")
    }
}
