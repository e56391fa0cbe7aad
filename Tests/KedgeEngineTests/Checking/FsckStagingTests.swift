import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R2: damage to staged bytes is found for what it is. After a repair the client sends the missing
/// bytes again, and no others.
@Suite(.timeLimit(.minutes(1))) struct FsckStagingTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// A session of 3500 bytes at rest, with chunks 0, 1 and 3 and 300 bytes of chunk 2.
    private func interrupted() async throws -> Upload {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        for index in [0, 1, 3] { try await node.put(index, of: upload) }
        await node.breakOff(2, of: upload, after: 300)
        try await node.kill()
        return upload
    }

    /// Completes the upload from the service's offsets, and expects the right bytes in the end.
    private func complete(
        _ upload: Upload, sending sent: [Int], at location: SourceLocation = #_sourceLocation
    ) async throws {
        let node = try await fixture.start()
        let status = try await node.status(of: upload)
        let missing = (0..<upload.chunkCount).filter { !status.receivedChunks.contains($0) }
        #expect(missing == sent, sourceLocation: location)
        for index in missing {
            let partial = status.partialChunks.first { $0.index == index }
            try await node.put(index, of: upload, from: Int(partial?.receivedBytes ?? 0))
        }
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest, sourceLocation: location)
        #expect(try await node.content(of: file) == upload.content, sourceLocation: location)
        try await node.kill()
        #expect(try await fixture.check(scrubbing: true) == [], sourceLocation: location)
    }

    @Test(
        arguments: [
            (3499, [3...3]), (2300, [3...3]), (2299, [3...3]), (1999, [1...1, 3...3]),
            (0, [0...1, 3...3]),
        ] as [(Int64, [ClosedRange<Int>])])
    func `a staging file that is too short is found, and its chunks are asked for again`(
        byteCount: Int64, lost: [ClosedRange<Int>]
    ) async throws {
        let upload = try await interrupted()
        try Damage.cut(fixture.stagingPath(upload), to: byteCount)
        let found = try await fixture.check(scrubbing: true)
        #expect(found.kinds == [.stagingShort])
        #expect(found.ids == [upload.id.text])
        #expect(found.first?.chunks == lost)
        let repaired = try await fixture.repair(scrubbing: false)
        #expect(repaired.kinds == [.stagingShort])
        #expect(repaired.areRepaired)
        #expect(try await fixture.check(scrubbing: true) == [])
        try await complete(upload, sending: ([2] + lost.flatMap { Array($0) }).sorted())
    }

    @Test func `a staging file that is gone is found, and everything is asked for again`()
        async throws
    {
        let upload = try await interrupted()
        #expect(try POSIXFileSystem().remove(fixture.stagingPath(upload)))
        #expect(try await fixture.check().kinds == [.stagingMissing])
        #expect(try await fixture.repair().areRepaired)
        #expect(try await fixture.check(scrubbing: true) == [])
        try await complete(upload, sending: [0, 1, 2, 3])
    }

    /// The saved hash of the prefix covers the second byte already, so only the chunk's digest
    /// shows that damage.
    @Test(arguments: [(1, 0), (1999, 1), (3000, 3)] as [(Int64, Int)])
    func `a flipped bit in a chunk is found by hashing, and the chunk is asked for again`(
        offset: Int64, chunk: Int
    ) async throws {
        let upload = try await interrupted()
        try Damage.flip(fixture.stagingPath(upload), at: offset)
        #expect(try await fixture.check() == [], "names and sizes are right")
        let found = try await fixture.check(scrubbing: true)
        #expect(found.kinds == [.chunkDamaged])
        #expect(found.first?.chunks == [chunk...chunk])
        #expect(try await fixture.repair().areRepaired)
        try await complete(upload, sending: [chunk, 2].sorted())
    }

    @Test func `a flipped bit in a partial is found, and only that is asked for again`()
        async throws
    {
        let upload = try await interrupted()
        try Damage.flip(fixture.stagingPath(upload), at: 2100)
        #expect(try await fixture.check() == [])
        let found = try await fixture.check(scrubbing: true)
        #expect(found.kinds == [.partialDamaged])
        #expect(found.first?.chunks == [2...2])
        #expect(try await fixture.repair().areRepaired)
        try await complete(upload, sending: [2])
    }

    @Test func `a saved hash of a partial that cannot be read is found without hashing`()
        async throws
    {
        let upload = try await interrupted()
        var node = try await fixture.start()
        let partial = PartialRecord(
            index: 2, byteCount: 300, hashState: [9], declaredDigest: nil)
        try await node.metadata.savePartial(partial, touching: touch(upload))
        try await node.kill()
        #expect(try await fixture.check().kinds == [.partialDamaged])
        #expect(try await fixture.check(scrubbing: true).kinds == [.partialDamaged])
        #expect(try await fixture.repair(scrubbing: false).areRepaired)
        node = try await fixture.start()
        #expect(try await node.status(of: upload).partialChunks == [])
        try await node.kill()
        try await complete(upload, sending: [2])
    }

    private func touch(_ upload: Upload, prefix: HashCheckpoint? = nil) -> SessionUpdate {
        SessionUpdate(
            id: upload.id, expiresAt: fixture.clock.now().advanced(by: .seconds(1000)),
            prefix: prefix)
    }

    /// Saved hashes that finalize would trust: of other bytes, of more bytes than there are, or
    /// unreadable.
    @Test(arguments: [
        (HashCheckpoint(hasher(over: 2000)), false), (HashCheckpoint(hasher(over: 2100)), true),
        (HashCheckpoint(offset: 2000, state: [1, 2]), true),
    ])
    func `a wrong saved hash of the prefix is found and computed again`(
        prefix: HashCheckpoint, showsWithoutHashing: Bool
    ) async throws {
        let upload = try await interrupted()
        let node = try await fixture.start()
        // Removes the stored prefix first: a prefix never goes back.
        try await node.metadata.invalidateChunks([], of: upload.id)
        _ = try await node.metadata.commit([], touching: touch(upload, prefix: prefix))
        try await node.kill()
        #expect(try await fixture.check().kinds == (showsWithoutHashing ? [.prefixDamaged] : []))
        #expect(try await fixture.check(scrubbing: true).kinds == [.prefixDamaged])
        #expect(try await fixture.repair().areRepaired)
        try await complete(upload, sending: [2])
    }

    private static func hasher(over count: Int) -> SHA256Hasher {
        var hasher = SHA256Hasher()
        hasher.update(sampleBytes(count, seed: 99))
        return hasher
    }

    @Test func `bytes that the disk fails to read are reported, and nothing is invalidated`()
        async throws
    {
        let upload = try await interrupted()
        fixture.disk.fail(.read)
        let found = try await fixture.check(scrubbing: true)
        #expect(found.kinds == [.bytesUnreadable])
        #expect(found.first?.chunks == [0...0])
        fixture.disk.fail(.read)
        let repaired = try await fixture.repair()
        #expect(repaired.kinds == [.bytesUnreadable])
        #expect(!repaired.hasRepairs)
        fixture.disk.heal()
        #expect(try await fixture.check(scrubbing: true) == [])
        try await complete(upload, sending: [2])
    }

    @Test func `damage to an expired session is reported and left as it is`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        fixture.clock.advance(by: node.engine.configuration.sessionLifetime + .seconds(1))
        try await node.engine.sweep()
        try await node.kill()
        try Damage.flip(fixture.stagingPath(upload), at: 5)
        #expect(try await fixture.check(scrubbing: true).kinds == [.chunkDamaged])
        let repaired = try await fixture.repair()
        #expect(repaired.kinds == [.chunkDamaged])
        #expect(!repaired.hasRepairs)
        #expect(try await fixture.check(scrubbing: true).kinds == [.chunkDamaged])
    }

    /// The service stops between the two transactions of a finalize, before or after the rename.
    @Test(arguments: [false, true])
    func `an interrupted finalize is no finding, and damage to its bytes is reported`(
        isPromoted: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        _ = try await node.metadata.beginFinalize(
            of: upload.id, digest: upload.digest, fileID: .random())
        if isPromoted {
            try await node.bytes.promote(
                StagingKey(upload.id), to: upload.digest, byteCount: 2500)
        }
        try await node.kill()
        #expect(try await fixture.check(scrubbing: true) == [])
        let path = isPromoted ? fixture.blobPath(upload.digest) : fixture.stagingPath(upload)
        try Damage.flip(path, at: 1500)
        for found in [try await fixture.check(scrubbing: true), try await fixture.repair()] {
            #expect(found.kinds == [isPromoted ? .blobDamaged : .chunkDamaged])
            #expect(found.ids == [upload.id.text])
            #expect(found.first?.chunks == [1...1])
            #expect(!found.hasRepairs)
        }
        #expect(try POSIXFileSystem().remove(path))
        #expect(try await fixture.check().kinds == [.stagingMissing])
    }

    /// A sync makes and removes this file to change the directory. A kill in between leaves it.
    @Test func `an empty file that a killed sync left is no finding`() async throws {
        let upload = try await interrupted()
        let staging = fixture.stagingPath(upload).split(separator: "/").dropLast().joined(
            separator: "/")
        for directory in [
            "/" + staging, fixture.dataPath + "/blobs", fixture.dataPath + "/quarantine",
        ] {
            try fixture.disk.open(directory + "/resync", .createNew).close()
        }
        #expect(try await fixture.check(scrubbing: true) == [])
        try await complete(upload, sending: [2])
    }
}
