import Glibc
import KedgeFiles
import KedgeLocks
import KedgeStoreTests
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
            disk.real.plan(.init(after: round % 8, of: .syncDirectory, with: EIO))
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
            let kept = Set(disk.real.image.surviving(.losesAll).paths)
            #expect(Set(results.compactMap { $0 }).subtracting(kept) == [])
            #expect(results.count { $0 == nil } == 1)
        }
        #expect(disk.maxOverlap == 1)
    }
}

/// A simulated disk that notices directory syncs at the same time.
private final class OverlapDisk: FileSystem {
    private struct State {
        var count = 0
        var most = 0
    }

    let real = SimulatedDisk()
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
        try real.syncDirectory(path)
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        try real.open(path, mode)
    }
    func status(of path: String) throws(FileError) -> FileStatus? { try real.status(of: path) }
    func makeDirectory(_ path: String) throws(FileError) { try real.makeDirectory(path) }
    func list(_ path: String) throws(FileError) -> [String] { try real.list(path) }
    func rename(_ source: String, to target: String) throws(FileError) {
        try real.rename(source, to: target)
    }
    func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        try real.renameWithoutReplacing(source, to: target)
    }
    func remove(_ path: String) throws(FileError) -> Bool { try real.remove(path) }
    func availableBytes(at path: String) throws(FileError) -> Int64 {
        try real.availableBytes(at: path)
    }
}
