import Glibc
import KedgeFiles
import KedgeLocks
import KedgeTesting
import Testing

@testable import KedgeDisk

/// R114: the kernel tells of a failed sync once, so nobody may sync a directory beside somebody else.
@Suite(.timeLimit(.minutes(1))) struct `Names of a directory` {
    @Test func `are synced by one call at a time, and none succeeds beside a failure`()
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
            // Whoever was told of success has its name on the platter.
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
        // Long enough for others to come.
        usleep(2000)
        try base.syncDirectory(path)
    }
}
