import Glibc
import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct DataDirectoryTests {
    private let key = StagingKey("0123456789abcdef0123456789abcdef")

    @Test func `a second store of one directory is refused until the first is closed`() async throws
    {
        let fixture = try DiskEnvironment()
        let first = try await fixture.open()
        await #expect(throws: DiskStoreError.inUse(directory: fixture.path)) {
            try await fixture.open()
        }
        await first.close()
        let second = try await fixture.open()
        await second.close()
    }

    /// As a process that is just being started holds every lock of its parent for a moment.
    @Test func `a store opens although the lock outlives its earlier holder for a moment`()
        async throws
    {
        let fixture = try DiskEnvironment()
        fixture.files.fail(after: 0, of: .lock, with: EWOULDBLOCK)
        let store = try await fixture.open()
        #expect(fixture.files.hasFailed)
        await store.close()
    }

    @Test func `files are the owner's alone and lie where they are documented to lie`() async throws
    {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        let digest = SHA256Hasher.digest(of: [1])
        try await store.stage([1], as: key)
        #expect(TemporaryDirectory.mode(of: "\(fixture.path)/staging/01/\(key)") == 0o600)
        try await store.promote(key, to: digest, byteCount: 1)
        let hex = digest.hex
        let parent = "\(fixture.path)/blobs/\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))"
        #expect(TemporaryDirectory.mode(of: "\(parent)/\(hex)") == 0o600)
        for directory in [fixture.path, "\(fixture.path)/staging/01", parent] {
            #expect(TemporaryDirectory.mode(of: directory) == 0o700)
        }
        await store.close()
    }

    @Test func `files whose names are no keys are neither listed nor touched`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open()
        try await store.stage([1], as: key)
        let files = POSIXFileSystem()
        let strangers = ["staging/01/notes.txt", "staging/01/fedcba9876543210fedcba9876543210"]
        for name in strangers { try files.open("\(fixture.path)/\(name)", .createNew).close() }
        #expect(try await store.stagingKeys() == [key])
        for name in strangers { #expect(try files.status(of: "\(fixture.path)/\(name)") != nil) }
        await store.close()
    }

    @Test func `the reserved space does not count as available`() async throws {
        let fixture = try DiskEnvironment()
        let store = try await fixture.open(reserveByteCount: .max)
        #expect(try await store.availableBytes() == 0)
        await store.close()
    }

    @Test func `a store leaves no descriptor open, also after failures`() async throws {
        let fixture = try DiskEnvironment(threadCount: 1)
        for position in 0..<40 {
            fixture.files.fail(after: position)
            do {
                let store = try await fixture.open()
                try await store.stage([1, 2, 3], as: key)
                try await store.promote(key, to: SHA256Hasher.digest(of: [1, 2, 3]), byteCount: 3)
                try await store.checkHealth()
                await store.close()
            } catch {
                // The planned failure; what counts is what it leaves open.
            }
            try await fixture.settle()
            #expect(try fixture.directory.openDescriptorCount() == 0)
        }
    }
}
