import Glibc
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Bytes at rest on a disk: damage is found, reported and repaired.
@Suite(.timeLimit(.minutes(1))) struct ScrubTests {
    private let fixture: EngineEnvironment
    private let content = sampleBytes(2500)

    init() throws { fixture = try EngineEnvironment() }

    private var blobPath: String { fixture.blobPath(SHA256Hasher.digest(of: content)) }
    private var copies: String { "\(fixture.dataPath)/superseded" }

    /// Flips a bit, keeping the size.
    private func damage(_ path: String, at offset: Int64 = 1200) throws {
        let file = try POSIXFileSystem().open(path, .readWrite)
        var byte: UInt8 = 0
        _ = try withUnsafeMutableBytes(of: &byte) { try file.read(into: $0, at: offset) }
        byte ^= 1
        try withUnsafeBytes(of: byte) { try file.write($0, at: offset) }
        try file.close()
    }

    private func expectDamaged(_ file: FileRecord, on node: Node) async throws {
        await #expect(throws: EngineError(.fileDamaged)) {
            try await node.engine.file(file.id, owner: file.owner)
        }
    }

    @Test func `a good upload takes the place of a damaged blob of the same size`() async throws {
        let node = try await fixture.start()
        let first = try await node.file(content)
        try damage(blobPath)
        let second = try await node.file(content)
        for file in [first, second] {
            #expect(try await node.content(of: file) == content)
        }
        try await node.scrubAll()
        #expect(try POSIXFileSystem().list(copies) == [])
        #expect(try await node.content(of: first) == content)
    }

    /// Files are intact, and may be back in a moment: a wrong mount, or rights that are repaired.
    @Test func `a directory of blobs that is away damages no file`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(content)
        let (blobs, aside) = ("\(fixture.dataPath)/blobs", "\(fixture.dataPath)/aside")
        let files = POSIXFileSystem()
        try files.rename(blobs, to: aside)
        try await node.scrubAll()
        await #expect(throws: EngineError(.unavailable)) { try await node.content(of: file) }
        try files.open(blobs, .createNew).close()
        try await node.scrubAll()
        #expect(try files.remove(blobs))
        try files.rename(aside, to: blobs)
        #expect(node.engine.scrubbed.damagedCount == 0)
        #expect(try await node.content(of: file) == content)
    }

    @Test func `an earlier copy comes back when the later one is damaged`() async throws {
        let node = try await fixture.start()
        let first = try await node.file(content)
        let second = try await node.file(content)
        try damage(blobPath)
        try await node.scrubAll()
        for file in [first, second] {
            #expect(try await node.content(of: try await node.now(file)) == content)
        }
        #expect(try POSIXFileSystem().list(copies) == [])
        #expect(node.engine.scrubbed.restoredCount == 1)
    }

    @Test func `a damaged file is refused, listed, and healed by the same content`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(content)
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        try damage(blobPath)
        try await node.scrubAll()
        try await expectDamaged(file, on: node)
        await #expect(throws: EngineError(.fileDamaged)) { try await node.finish(upload) }
        let listed = try await node.engine.files(
            of: .tester, after: nil, limit: 9, onlyDamaged: true)
        #expect(listed.map(\.id) == [file.id])
        #expect(node.engine.scrubbed.damagedCount == 1)

        let again = try await node.file(content)
        #expect(try await node.content(of: try await node.now(file)) == content)
        #expect(try await node.content(of: again) == content)
        #expect(
            try await node.engine.files(of: .tester, after: nil, limit: 9, onlyDamaged: true) == [])
    }

    @Test func `damage between a chunk and the finalize is found soon after`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(content)
        try await node.putAll(of: upload)
        try damage(fixture.stagingPath(upload))
        let file = try await node.finish(upload)
        try await node.scrubAll()
        try await expectDamaged(file, on: node)
    }

    @Test(arguments: [0, 2499, 5000])
    func `a missing blob, or one of another size, is never opened`(size: Int) async throws {
        let node = try await fixture.start()
        let file = try await node.file(content)
        if size == 0 {
            unlink(blobPath)
        } else {
            truncate(blobPath, off_t(size))
        }
        await #expect(throws: EngineError(.fileDamaged)) { try await node.engine.openFile(file) }
        try await expectDamaged(file, on: node)
        let again = try await node.file(content)
        #expect(try await node.content(of: again) == content)
        #expect(try await node.content(of: try await node.now(file)) == content)
    }

    @Test func `a file is read once after its upload and again when the period is over`()
        async throws
    {
        let node = try await fixture.start()
        let file = try await node.file(content)
        #expect(try await node.engine.scrubBacklog().newCount == 1)
        try await node.scrubAll()
        #expect(try await node.engine.scrubBacklog().newCount == 0)
        try damage(blobPath)
        try await node.scrubAll()
        #expect(try await node.content(of: file) != content)
        fixture.clock.advance(by: EngineConfiguration().scrubPeriod)
        try await node.scrubAll()
        try await expectDamaged(file, on: node)
    }

    @Test func `the findings of a scrub survive a restart`() async throws {
        var node = try await fixture.start()
        let file = try await node.file(content)
        try damage(blobPath)
        try await node.scrubAll()
        node = try await node.restart()
        try await expectDamaged(file, on: node)
        #expect(try await node.engine.scrubNext() == false)
    }

    @Test func `an upload during a scrub invalidates its verdict`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(content)
        try damage(blobPath)
        let lease = WorkLease(
            holder: "other", now: fixture.clock.now(),
            until: fixture.clock.now().advanced(by: .seconds(60)))
        let target = try #require(try await node.metadata.claimScrub(lease: lease))
        _ = try await node.file(content)
        let isCurrent = try await node.metadata.finishScrub(
            target, .damaged, lease: lease, nextAt: fixture.clock.now())
        #expect(!isCurrent)
        #expect(try await node.content(of: try await node.now(file)) == content)
    }

    @Test func `a copy is not released before the bytes that took its name were read`() async throws
    {
        let node = try await fixture.start()
        let first = try await node.file(content)
        try await node.scrubAll()
        let upload = try await node.begin(content)
        try await node.putAll(of: upload)
        try damage(fixture.stagingPath(upload))
        // The bytes have their final name, and their file has no row yet.
        node.metadata.before { call in
            if call == .completeFinalize { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) { try await node.finish(upload) }
        node.metadata.before(nil)
        try await node.scrubAll()
        #expect(try await node.content(of: try await node.now(first)) == content)
        // The second upload may be a file now, or find its bytes replaced. Neither may harm the
        // first file.
        _ = try? await node.finish(upload)
        try await node.scrubAll()
        #expect(try await node.content(of: try await node.now(first)) == content)
    }

    @Test func `a blob that cannot be opened does not keep the others from being read`()
        async throws
    {
        let node = try await fixture.start()
        let bad = try await node.file(content)
        let good = try await node.file(sampleBytes(1500, seed: 2))
        unlink(blobPath)
        #expect(mkdir(blobPath, 0o700) == 0)
        try await node.scrubAll()
        try await expectDamaged(bad, on: node)
        #expect(try await node.content(of: good) == sampleBytes(1500, seed: 2))
        #expect(try await node.engine.scrubBacklog().newCount == 0)
    }

    @Test func `a resumed scrub finds damage beyond the bytes that were read before`()
        async throws
    {
        let node = try await fixture.start()
        _ = try await node.file(content)
        let lease = WorkLease(
            holder: "other", now: fixture.clock.now(), until: fixture.clock.now())
        let target = try #require(try await node.metadata.claimScrub(lease: lease))
        #expect(try await node.metadata.renewScrub(target, lease: lease, checkedByteCount: 1000))
        try damage(blobPath, at: 1999)
        try await node.scrubAll()
        #expect(node.engine.scrubbed.damagedCount == 1)
        #expect(node.engine.scrubbed.byteCount < 2500 + 1500)
    }

    @Test func `repeated uploads of one content keep two superseded copies beside it`()
        async throws
    {
        let node = try await fixture.start()
        for _ in 0..<6 { _ = try await node.file(content) }
        #expect(try POSIXFileSystem().list(copies).count == 2)
        try await node.scrubAll()
        #expect(try POSIXFileSystem().list(copies) == [])
    }

    @Test func `superseded copies go with the last file that has the bytes`() async throws {
        let node = try await fixture.start()
        let files = [try await node.file(content), try await node.file(content)]
        #expect(try POSIXFileSystem().list(copies).count == 1)
        for file in files { try await node.engine.deleteFile(file.id, owner: .tester) }
        try await node.engine.sweep()
        #expect(try POSIXFileSystem().list(copies) == [])
        #expect(try POSIXFileSystem().status(of: blobPath) == nil)
        #expect(try await node.engine.scrubBacklog().newCount == 0)
    }

    @Test func `deleting a damaged file removes its bytes`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(content)
        try damage(blobPath)
        try await node.scrubAll()
        try await node.engine.deleteFile(file.id, owner: .tester)
        #expect(try POSIXFileSystem().status(of: blobPath) == nil)
    }

    @Test func `a repair marks a damaged file, which the next start refuses`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(content)
        try await node.scrubAll()
        try await node.kill()
        try damage(blobPath)
        let found = try await fixture.repair()
        #expect(found.map(\.kind) == [.blobDamaged])
        #expect(found.map(\.isRepaired) == [false], "only the same bytes repair it")
        let next = try await fixture.start()
        try await expectDamaged(file, on: next)
        let again = try await next.file(content)
        for file in [file, again] { #expect(try await next.content(of: file) == content) }
    }

    @Test func `a check accepts superseded copies, and a repair quarantines unknown ones`()
        async throws
    {
        let node = try await fixture.start()
        for _ in 0..<2 { _ = try await node.file(content) }
        try await node.kill()
        #expect(try await fixture.check(scrubbing: true).isEmpty)
        let digest = SHA256Hasher.digest(of: content)
        let stray = "\(copies)/\(digest.hex).\(SessionID.random().text)"
        try POSIXFileSystem().open(stray, .createNew).close()
        #expect(try await fixture.check().map(\.kind) == [.blobOrphaned])
        #expect(try await fixture.repair().map(\.isRepaired) == [true])
        #expect(try POSIXFileSystem().list(copies).count == 1)
    }
}

extension Node {
    /// The current record of a file that is not damaged.
    fileprivate func now(_ file: FileRecord) async throws -> FileRecord {
        try await engine.file(file.id, owner: file.owner)
    }
}
