import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

/// R2: damage to finished files, bytes that no row knows, and a database that cannot be trusted.
@Suite(.timeLimit(.minutes(1))) struct FsckFileTests {
    private let fixture: EngineEnvironment
    private let files = POSIXFileSystem()

    init() throws { fixture = try EngineEnvironment() }

    /// Stores a file for each content, and stops the service.
    private func stored(_ contents: [UInt8]...) async throws -> [FileRecord] {
        let node = try await fixture.start()
        var records: [FileRecord] = []
        for content in contents { records.append(try await node.file(content)) }
        try await node.kill()
        return records
    }

    /// Uploads the content and reads it back through both files.
    private func expectCured(
        _ file: FileRecord, by content: [UInt8], at location: SourceLocation = #_sourceLocation
    ) async throws {
        let node = try await fixture.start()
        let copy = try await node.file(content)
        #expect(try await node.content(of: copy) == content, sourceLocation: location)
        #expect(try await node.content(of: file) == content, sourceLocation: location)
        try await node.kill()
        #expect(try await fixture.check(scrubbing: true) == [], sourceLocation: location)
    }

    @Test(arguments: [false, true])
    func `a store without damage gives no findings`(scrubbing: Bool) async throws {
        let node = try await fixture.start()
        _ = try await node.file(sampleBytes(2500))
        _ = try await node.file(sampleBytes(2500))
        _ = try await node.file([])
        let deleted = try await node.file(sampleBytes(1200, seed: 2))
        try await node.engine.deleteFile(deleted.id, owner: .tester)
        let unsized = try await node.begin(sampleBytes(2500, seed: 3), sized: false)
        _ = try await node.append(unsized.content.prefix(1700), to: unsized, at: 0)
        let scattered = try await node.begin(sampleBytes(4500, seed: 4))
        for index in [4, 2, 0] { try await node.put(index, of: scattered) }
        await node.breakOff(1, of: scattered, after: 300)
        let cancelled = try await node.begin(sampleBytes(2500, seed: 5))
        try await node.put(0, of: cancelled)
        try await node.engine.cancelSession(cancelled.id, owner: .tester)
        _ = try await node.begin(sampleBytes(2500, seed: 6))
        try await node.kill()
        #expect(try await fixture.check(scrubbing: scrubbing) == [])
        #expect(try await fixture.repair(scrubbing: scrubbing) == [])
    }

    @Test
    func `a missing blob is reported for every file, and an upload of the same bytes repairs it`()
        async throws
    {
        let content = sampleBytes(2500)
        let records = try await stored(content, content, sampleBytes(1500, seed: 2))
        #expect(try files.remove(fixture.blobPath(records[0].digest)))
        let ids = Set(records.prefix(2).map(\.id.text))
        for found in [try await fixture.check(), try await fixture.repair()] {
            #expect(found.kinds == [.blobMissing, .blobMissing])
            #expect(Set(found.ids) == ids)
            #expect(!found.hasRepairs)
        }
        try await expectCured(records[0], by: content)
    }

    @Test(arguments: [2499, 2501, 0] as [Int64])
    func `a blob of another size is reported, kept, and repaired by the same bytes`(
        byteCount: Int64
    ) async throws {
        let content = sampleBytes(2500)
        let file = try await stored(content)[0]
        let path = fixture.blobPath(file.digest)
        try Damage.cut(path, to: byteCount)
        for found in [try await fixture.check(), try await fixture.repair()] {
            #expect(found.kinds == [.blobSizeWrong])
            #expect(found.ids == [file.id.text])
        }
        #expect(try files.status(of: path)?.byteCount == byteCount)
        try await expectCured(file, by: content)
    }

    @Test func `a flipped bit in a blob is found by hashing, for every file, and nothing is moved`()
        async throws
    {
        let content = sampleBytes(2500)
        let records = try await stored(content, content)
        let path = fixture.blobPath(records[0].digest)
        try Damage.flip(path, at: 1234)
        let damaged = try Damage.content(path)
        #expect(try await fixture.check() == [])
        let readBytes = fixture.disk.counts.readBytes
        let found = try await fixture.check(scrubbing: true)
        #expect(fixture.disk.counts.readBytes - readBytes == 2500, "one blob is read once")
        let repaired = try await fixture.repair()
        for found in [found, repaired] {
            #expect(found.kinds == [.blobDamaged, .blobDamaged])
            #expect(Set(found.ids) == Set(records.map(\.id.text)))
            #expect(found.allSatisfy { $0.chunks == [1...1] && !$0.isRepaired })
        }
        #expect(try Damage.content(path) == damaged)
    }

    @Test func `a blob that the disk fails to read does not keep the others from being read`()
        async throws
    {
        let records = try await stored(sampleBytes(2500), sampleBytes(2500, seed: 2))
            .sorted { $0.digest.hex < $1.digest.hex }
        try Damage.flip(fixture.blobPath(records[1].digest), at: 1)
        fixture.disk.fail(.read)
        let found = try await fixture.check(scrubbing: true)
        #expect(found.kinds == [.bytesUnreadable, .blobDamaged])
        #expect(found.ids == records.map(\.id.text))
    }

    /// A client verifies its download with this list.
    @Test func `a chunk list that is not of the file's bytes is found by hashing`() async throws {
        let content = sampleBytes(2500)
        let records = try await stored(content, content)
        let wrong = records[1].sessionID
        let change: AlteredRows.Change = { id, chunks in
            chunks.map { chunk in
                guard id == wrong, chunk.index == 1 else { return chunk }
                return CommittedChunk(index: 1, byteCount: 1000, digest: records[0].digest)
            }
        }
        #expect(try await fixture.check(altering: change) == [])
        let found = try await fixture.check(scrubbing: true, altering: change)
        #expect(found.kinds == [.chunkListWrong])
        #expect(found.ids == [records[1].id.text])
        #expect(found.first?.chunks == [1...1])
    }

    @Test(arguments: [0, 1, 2])
    func `a chunk list with a gap is found without hashing`(index: Int) async throws {
        let file = try await stored(sampleBytes(2500))[0]
        let found = try await fixture.check { _, chunks in chunks.filter { $0.index != index } }
        #expect(found.kinds == [.chunkListWrong])
        #expect(found.ids == [file.id.text])
    }

    @Test func `a blob that no row knows is quarantined`() async throws {
        _ = try await stored(sampleBytes(2500))
        let content = sampleBytes(700, seed: 8)
        let digest = SHA256Hasher.digest(of: content)
        try Damage.plant(fixture.blobPath(digest), below: fixture.dataPath, content)
        let found = try await fixture.check()
        #expect(found.kinds == [.blobOrphaned])
        #expect(found.ids == [digest.hex])
        #expect(try Damage.content(fixture.blobPath(digest)) == content)
        try await expectQuarantined(digest.hex + ".1", content, after: .blobOrphaned)
        #expect(try Damage.content(fixture.blobPath(digest)) == nil)
        // A second orphan of the same name does not replace the first.
        try Damage.plant(fixture.blobPath(digest), below: fixture.dataPath, [1])
        #expect(try await fixture.repair().kinds == [.quarantined, .blobOrphaned])
        #expect(try Damage.content(fixture.quarantinePath(digest.hex + ".1")) == content)
        #expect(try Damage.content(fixture.quarantinePath(digest.hex + ".2")) == [1])
    }

    @Test func `a staging file that no row knows is quarantined`() async throws {
        _ = try await stored(sampleBytes(2500))
        let key = StagingKey(.random())
        let content = sampleBytes(700, seed: 8)
        try Damage.plant(fixture.stagingPath(key), below: fixture.dataPath, content)
        let found = try await fixture.check()
        #expect(found.kinds == [.stagingOrphaned])
        #expect(found.ids == [key.text])
        try await expectQuarantined(key.text + ".1", content, after: .stagingOrphaned)
        #expect(try Damage.content(fixture.stagingPath(key)) == nil)
    }

    /// Repairs, and expects that the quarantined bytes are a notice from then on.
    private func expectQuarantined(
        _ name: String, _ content: [UInt8], after kind: CheckFinding.Kind,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let repaired = try await fixture.repair()
        #expect(repaired.kinds == [kind], sourceLocation: location)
        #expect(repaired.areRepaired, sourceLocation: location)
        let kept = try Damage.content(fixture.quarantinePath(name))
        #expect(kept == content, sourceLocation: location)
        let left = try await fixture.check(scrubbing: true)
        #expect(left.kinds == [.quarantined], sourceLocation: location)
        #expect(left.ids == [name], sourceLocation: location)
        #expect(left.areNotices, sourceLocation: location)
    }

    @Test(arguments: [
        "blobs/stray", "blobs/ab/stray", "blobs/ab/cd/stray", "blobs/ab/cd/ef/stray",
        "staging/stray", "staging/ab/stray",
        "blobs/00/00/\(String(repeating: "ab", count: 32))",
        "staging/00/\(String(repeating: "ab", count: 16))",
    ])
    func `a name that the service never gives is reported and left alone`(path: String) async throws
    {
        _ = try await stored(sampleBytes(2500))
        try Damage.plant("\(fixture.dataPath)/\(path)", below: fixture.dataPath, [1, 2])
        let name = path.contains("/ef/") ? "ef" : path.split(separator: "/").last.map(String.init)
        for found in [try await fixture.check(), try await fixture.repair()] {
            #expect(found.kinds == [.nameUnknown])
            #expect(found.ids == [name])
            #expect(!found.hasRepairs)
        }
        #expect(try Damage.content("\(fixture.dataPath)/\(path)") == [1, 2])
    }

    /// A check that trusted the rows could take every byte for an orphan.
    @Test func `a check of a damaged database reports nothing else`() async throws {
        _ = try await stored(sampleBytes(2500))
        let size = try #require(try files.status(of: fixture.databasePath)?.byteCount)
        let orphan = SHA256Hasher.digest(of: [1])
        try Damage.plant(fixture.blobPath(orphan), below: fixture.dataPath, [1])
        // Damages the head of one page, from the last page down. Skips pages without which SQLite
        // cannot open the database.
        var found: [CheckFinding] = []
        var page = size / 4096
        while found.isEmpty, page > 1 {
            page -= 1
            let head = page * 4096..<page * 4096 + 16
            for offset in head { try Damage.flip(fixture.databasePath, at: offset) }
            do {
                found = try await fixture.check(scrubbing: true)
            } catch DatabaseCopyError.damaged {
                for offset in head { try Damage.flip(fixture.databasePath, at: offset) }
            }
        }
        #expect(!found.isEmpty)
        #expect(Set(found.kinds) == [.databaseDamaged])
    }

    @Test func `a damaged, empty or missing database is refused`() async throws {
        _ = try await stored(sampleBytes(2500))
        let content = try #require(try Damage.content(fixture.databasePath))
        try Damage.flip(fixture.databasePath, at: 3)
        await #expect(throws: DatabaseCopyError.damaged) { try await fixture.check() }
        try Damage.cut(fixture.databasePath, to: 0)
        await #expect {
            try await fixture.check()
        } throws: { error in
            guard case DatabaseCopyError.otherSchema(found: 0, _) = error else { return false }
            return true
        }
        #expect(try files.remove(fixture.databasePath))
        await #expect(throws: DatabaseCopyError.missing) { try await fixture.check() }
        try Damage.plant(fixture.databasePath, below: fixture.directory.path, content)
        #expect(try await fixture.check() == [])
    }

    @Test func `a data directory that a process uses, or begins to use, is refused`() async throws {
        let pool = BlockingPool(threadCount: 1)
        let node = try await fixture.start()
        await #expect(throws: DiskStoreError.inUse(directory: fixture.dataPath)) {
            try await DiskInspection.open(fixture.dataPath, pool: pool)
        }
        try await node.kill()
        #expect(try files.remove(fixture.dataPath + "/lock"))
        let inspection = try await DiskInspection.open(fixture.dataPath, pool: pool)
        try await inspection.confirmUndisturbed()
        #expect(try files.status(of: fixture.dataPath + "/lock") == nil)
        let other = try await fixture.start()
        await #expect(throws: DiskStoreError.inUse(directory: fixture.dataPath)) {
            try await inspection.confirmUndisturbed()
        }
        try await other.kill()
    }
}
