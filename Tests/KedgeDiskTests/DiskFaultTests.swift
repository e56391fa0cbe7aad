import Glibc
import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct DiskFaultTests {
    private let key = StagingKey("0123456789abcdef0123456789abcdef")
    private let digest = SHA256Hasher.digest(of: [1, 2, 3])

    /// Runs the work with its first call failing, then its second, until it succeeds. Repeats it
    /// after each failure, as a caller would.
    private func failEachCall(
        of fixture: DiskEnvironment, _ work: () async throws -> Void
    ) async throws -> Int {
        defer { fixture.files.heal() }
        for position in 0..<100 {
            fixture.files.fail(after: position)
            do {
                try await work()
            } catch is ByteStoreError {
                try await work()
            }
            if !fixture.files.hasFailed { return position }
        }
        Issue.record("it never ran without a failure")
        return 0
    }

    @Test func `a promotion can be repeated after a failure at any step`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let steps = try await failEachCall(of: fixture) {
            // Another name each time, so that its directories are not there yet.
            let name = FileID.random()
            let blob = SHA256Hasher.digest(of: Array(name.text.utf8))
            let area = StagingKey(.random())
            try stage(area, in: fixture)
            do {
                try await store.promote(area, to: blob, byteCount: 3)
            } catch {
                try await store.promote(area, to: blob, byteCount: 3)
                #expect(try await store.content(of: blob) == [1, 2, 3])
                #expect(try await store.stagingByteCount(area) == nil)
                throw error
            }
        }
        #expect(steps > 5)
        await store.close()
    }

    /// Stages without disturbing the plan of failures.
    private func stage(_ key: StagingKey, in fixture: DiskEnvironment) throws {
        let files = POSIXFileSystem()
        let parent = "\(fixture.path)/staging/\(key.text.prefix(2))"
        try files.makeDirectory(parent)
        let file = try files.open("\(parent)/\(key)", .createNew)
        try [UInt8]([1, 2, 3]).withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
    }

    @Test func `discarding a second copy can be repeated after a failure at any step`()
        async throws
    {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        try await store.stage([1, 2, 3], as: key)
        try await store.promote(key, to: digest, byteCount: 3)
        _ = try await failEachCall(of: fixture) {
            if try POSIXFileSystem().status(of: "\(fixture.path)/staging/01/\(key)") == nil {
                try stage(key, in: fixture)
            }
            try await store.promote(key, to: digest, byteCount: 3)
        }
        #expect(try await store.content(of: digest) == [1, 2, 3])
        #expect(try await store.stagingKeys() == [])
        await store.close()
    }

    @Test func `removal and quarantine can be repeated after a failure at any step`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let files = POSIXFileSystem()
        let quarantine = "\(fixture.path)/quarantine"
        for operation in [
            { try await store.removeStaging(key) }, { try await store.quarantine(key) },
        ] {
            _ = try await failEachCall(of: fixture) {
                // Each quarantined copy costs the next quarantine a call.
                for name in try files.list(quarantine) {
                    _ = try files.remove("\(quarantine)/\(name)")
                }
                if try files.status(of: "\(fixture.path)/staging/01/\(key)") == nil {
                    try stage(key, in: fixture)
                }
                try await operation()
            }
            #expect(try await store.stagingKeys() == [])
        }
        await store.close()
    }

    @Test func `after a failed sync an area refuses everything and a new one works`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let area = try await store.openStaging(key)
        try await area.write(SampleBytes.buffer([1, 2, 3]), at: 0)
        fixture.files.fail(after: 0, of: .syncData)
        await #expect(throws: ByteStoreError.self) { try await area.sync() }
        await #expect(throws: ByteStoreError.self) { try await area.sync() }
        await #expect(throws: ByteStoreError.self) {
            try await area.write(SampleBytes.buffer([1]), at: 0)
        }
        await #expect(throws: ByteStoreError.self) { try await area.bytes(at: 0, count: 1) }
        #expect(area.isInDoubt)
        await area.close()
        try await store.stage([1, 2, 3], as: key)
        try await store.promote(key, to: digest, byteCount: 3)
        #expect(try await store.content(of: digest) == [1, 2, 3])
        await store.close()
    }

    @Test func `an area refuses to sync after one of many concurrent syncs has failed`()
        async throws
    {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let area = try await store.openStaging(key)
        fixture.files.fail(after: 3, of: .syncData)
        let results = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    do {
                        try await area.sync()
                        return true
                    } catch {
                        return false
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // Syncs that share a flush may be so few that the planned one is never reached.
        if fixture.files.hasFailed {
            #expect(results.contains(false))
            await #expect(throws: ByteStoreError.self) { try await area.sync() }
        }
        await area.close()
        await store.close()
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `a full disk is reported as full and the area goes on when there is room`(
        _ number: Int32
    ) async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let area = try await store.openStaging(key)
        fixture.files.fail(after: 0, of: .write, with: number)
        let error = await #expect(throws: ByteStoreError.self) {
            try await area.write(SampleBytes.buffer([1]), at: 0)
        }
        guard case .full = error else {
            Issue.record("expected full, found \(String(describing: error))")
            return
        }
        try await area.write(SampleBytes.buffer([1, 2, 3]), at: 0)
        try await area.sync()
        await area.close()
        await store.close()
    }

    @Test func `a disk that became read-only is unavailable`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        fixture.files.fail(after: 0, of: .open, with: EROFS)
        let error = await #expect(throws: ByteStoreError.self) {
            try await store.openStaging(key)
        }
        guard case .unavailable = error else {
            Issue.record("expected unavailable, found \(String(describing: error))")
            return
        }
        await store.close()
    }

    @Test func `a damaged blob is replaced by the promoted bytes`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        try await store.stage([1, 2, 3], as: key)
        try await store.promote(key, to: digest, byteCount: 3)
        let hex = digest.hex
        let path = "\(fixture.path)/blobs/\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))/\(hex)"
        let file = try POSIXFileSystem().open(path, .readWrite)
        try file.truncate(to: 1)
        try file.close()
        try await store.stage([1, 2, 3], as: key)
        try await store.promote(key, to: digest, byteCount: 3)
        #expect(try await store.content(of: digest) == [1, 2, 3])
        await store.close()
    }
}
