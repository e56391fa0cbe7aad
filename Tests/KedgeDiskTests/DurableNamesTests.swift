import Glibc
import KedgeDisk
import KedgeFiles
import KedgeLocks
import KedgeTesting
import Testing

/// R114: the kernel reports a failed sync once, so no two calls may sync a directory at the same
/// time.
@Suite(.timeLimit(.minutes(1))) struct DurableNamesTests {
    @Test func `a directory is synced by one call at a time, and none succeeds beside a failure`()
        async throws
    {
        let disk = OverlapDisk()
        try disk.makeDirectory("/data")
        try disk.syncDirectory("/")
        let names = DurableNames(disk)
        let pool = BlockingPool(threadCount: 8)
        for round in 0..<20 {
            disk.base.plan(.init(after: round % 8, of: .syncDirectory, with: EIO))
            let results = await withTaskGroup(of: String?.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        // The planned failure of a sync is one nil among the results.
                        try? await pool.run {
                            let path = "/data/\(round)-\(number)"
                            try disk.open(path, .createNew).close()
                            try names.sync("/data")
                            return path
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // Every name whose sync succeeded is on the platter.
            let kept = Set(disk.base.image.surviving(.losesAll).paths)
            #expect(Set(results.compactMap { $0 }).subtracting(kept) == [])
            #expect(results.count { $0 == nil } == 1)
        }
        #expect(disk.maxOverlap == 1)
    }
}

/// A simulated disk that notices directory syncs at the same time.
private final class OverlapDisk: ForwardingFileSystem {
    private struct State {
        var count = 0
        var most = 0
    }

    let base = SimulatedDisk()
    private let state = Mutex(State())

    var maxOverlap: Int { state.withLock { $0.most } }

    func syncDirectory(_ path: String) throws(FileError) {
        state.withLock {
            $0.count += 1
            $0.most = max($0.most, $0.count)
        }
        defer { state.withLock { $0.count -= 1 } }
        // Long enough for other calls to overlap.
        usleep(2000)
        try base.syncDirectory(path)
    }
}
