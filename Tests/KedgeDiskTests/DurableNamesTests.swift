import Glibc
import KedgeDisk
import KedgeFiles
import KedgeLocks
import KedgeTesting
import Testing

/// R114: the kernel reports a failed sync once, so no two calls may sync a directory at the same
/// time.
@Suite(.timeLimit(.minutes(1))) struct DurableNamesTests {
    @Test(arguments: [false, true])
    func `a directory is synced by one call at a time, and none succeeds beside a failure`(
        hasChanged: Bool
    ) async throws {
        let disk = OverlapDisk()
        try disk.makeDirectory("/data")
        try disk.syncDirectory("/")
        let names = DurableNames(disk)
        let pool = BlockingPool(threadCount: 8)
        for round in 0..<20 {
            disk.failSync(after: round % 3)
            let results = await withTaskGroup(of: String?.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        // The planned failure of a sync is one nil among the results.
                        try? await pool.run {
                            let path = "/data/\(round)-\(number)"
                            try disk.open(path, .createNew).close()
                            try names.sync("/data", hasChanged: hasChanged)
                            return path
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // Every name whose sync succeeded is on the platter.
            let kept = Set(disk.base.image.surviving(.losesAll).paths)
            #expect(Set(results.compactMap { $0 }).subtracting(kept) == [])
            #expect(results.count { $0 == nil } == disk.takeFailures())
        }
        #expect(disk.maxOverlap == 1)
    }

    @Test func `calls that wait for a sync share the next one`() async throws {
        let disk = OverlapDisk()
        try disk.makeDirectory("/data")
        try disk.syncDirectory("/")
        let names = DurableNames(disk)
        let pool = BlockingPool(threadCount: 16)
        let before = disk.syncCount
        try await withThrowingTaskGroup { group in
            for number in 0..<16 {
                group.addTask {
                    try await pool.run {
                        try disk.open("/data/\(number)", .createNew).close()
                        try names.sync("/data", hasChanged: true)
                        let kept = Set(disk.base.image.surviving(.losesAll).paths)
                        #expect(kept.contains("/data/\(number)"))
                    }
                }
            }
            try await group.waitForAll()
        }
        // Without sharing there would be one for each.
        #expect(disk.syncCount - before < 12)
    }

    /// A failed sync makes the kernel forget changes of others, too, which they sync only later.
    @Test func `a change before the failed sync of another is not lost`() throws {
        let disk = OverlapDisk()
        try disk.makeDirectory("/data")
        try disk.syncDirectory("/")
        let names = DurableNames(disk)
        try disk.open("/data/a", .createNew).close()
        try disk.open("/data/b", .createNew).close()
        disk.failSync(after: 0)
        #expect(throws: FileError.self) { try names.sync("/data", hasChanged: true) }
        try names.sync("/data", hasChanged: true)
        #expect(
            Set(disk.base.image.surviving(.losesAll).paths).isSuperset(of: ["/data/a", "/data/b"]))
        try names.sync("/data")
    }

    @Test func `a directory that has just changed is not changed again before its first sync`()
        throws
    {
        let disk = OverlapDisk()
        try disk.makeDirectory("/data")
        try disk.syncDirectory("/")
        try disk.open("/data/file", .createNew).close()
        let count = disk.openCount
        try DurableNames(disk).sync("/data", hasChanged: true)
        #expect(disk.openCount == count)
        #expect(disk.base.image.surviving(.losesAll).paths.contains("/data/file"))
        // Another process may have failed to sync it.
        try DurableNames(disk).sync("/data")
        #expect(disk.openCount == count + 1)
    }
}

/// A simulated disk that notices directory syncs at the same time.
private final class OverlapDisk: ForwardingFileSystem {
    private struct State {
        var count = 0
        var most = 0
        var syncs = 0
        var opens = 0
        var failures = 0
        /// Syncs until the one that fails; nil if none does.
        var untilFailure: Int?
    }

    let base = SimulatedDisk()
    private let state = Mutex(State())

    var maxOverlap: Int { state.withLock { $0.most } }
    var syncCount: Int { state.withLock { $0.syncs } }
    var openCount: Int { state.withLock { $0.opens } }

    /// Lets one sync fail, after a number of others.
    func failSync(after count: Int) { state.withLock { $0.untilFailure = count } }

    /// Returns how many syncs have failed since the last call.
    func takeFailures() -> Int {
        state.withLock { state in
            defer { state.failures = 0 }
            return state.failures
        }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        state.withLock { $0.opens += 1 }
        return try base.open(path, mode)
    }

    func syncDirectory(_ path: String) throws(FileError) {
        let fails = state.withLock { state in
            state.syncs += 1
            state.count += 1
            state.most = max(state.most, state.count)
            let fails = state.untilFailure == 0
            state.untilFailure = state.untilFailure.flatMap { $0 == 0 ? nil : $0 - 1 }
            state.failures += fails ? 1 : 0
            return fails
        }
        if fails { base.plan(.init(after: 0, of: .syncDirectory, with: EIO)) }
        defer { state.withLock { $0.count -= 1 } }
        // Long enough for other calls to overlap.
        usleep(2000)
        try base.syncDirectory(path)
    }
}
