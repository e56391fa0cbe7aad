import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgePostgres
import KedgeS3
import KedgeTesting
import Testing

/// R2: rows in PostgreSQL compared with a bucket, while a node uses both.
@Suite(.timeLimit(.minutes(2))) struct FsckFleetTests {
    private func withNode(
        _ body: (FleetEnvironment, TestNode) async throws -> Void
    ) async throws {
        let fixture = try await FleetEnvironment()
        let node = try await fixture.start()
        try await body(fixture, node)
        try await node.stop()
    }

    /// Makes a session with three chunks of four, and 300 bytes of the missing one.
    private func interrupted(on node: TestNode) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(3500))
        for index in [0, 1, 3] { try await node.put(index, of: upload) }
        await node.breakOff(2, of: upload, after: 300)
        return upload
    }

    private func file(_ content: [UInt8], on node: TestNode) async throws -> FileRecord {
        let upload = try await node.begin(content)
        try await node.putAll(of: upload)
        return try await node.finishWaiting(upload)
    }

    @Test func `files, sessions and garbage of a fleet give no findings`() async throws {
        try await withNode { _, node in
            let upload = try await interrupted(on: node)
            for content in [sampleBytes(2500), sampleBytes(2500), sampleBytes(700), []] {
                _ = try await file(content, on: node)
            }
            let deleted = try await file(sampleBytes(1200, seed: 2), on: node)
            try await node.engine.deleteFile(deleted.id, owner: .tester)
            #expect(try await node.check() == [])
            // After the sweep only the files refer to their objects.
            try await node.engine.sweep()
            let found = try await node.check(scrubbing: true)
            #expect(found.kinds == [.bytesUnchecked])
            #expect(found.ids == [upload.id.text])
        }
    }

    @Test func `missing bytes of a session are asked for again after a repair`()
        async throws
    {
        try await withNode { fixture, node in
            let upload = try await interrupted(on: node)
            let key = StagingKey(upload.id)
            let state = try await node.metadata.stagingState(of: key)
            try await node.bytes.removeStaging(key, state: state, keeping: nil)
            #expect(try await node.check().kinds == [.stagingMissing])
            let repaired = try await node.check(repairing: true)
            #expect(repaired.kinds == [.stagingMissing])
            #expect(repaired.areRepaired)
            #expect(try await node.check() == [])
            let other = try await fixture.start()
            let status = try await other.status(of: upload)
            #expect(status.receivedChunks.isEmpty && status.partialChunks.isEmpty)
            try await other.stop()
        }
    }

    /// No row says whose bytes these are, and a bucket has no quarantine.
    @Test func `an object that no row knows is reported, and a repair leaves it`() async throws {
        try await withNode { fixture, node in
            let key = StagingKey(.random())
            let area = try await node.bytes.openStaging(key)
            let content = sampleBytes(700)
            try await area.write(SampleBytes.buffer(content), at: 0)
            _ = try await area.saveChunk(
                ChunkRange(index: 0, start: 0, byteCount: 700, isWholeFile: true),
                digest: SHA256Hasher.digest(of: content), after: nil)
            await area.close()
            let before = try await fixture.leftovers()
            for found in [try await node.check(), try await node.check(repairing: true)] {
                #expect(found.kinds == [.stagingOrphaned])
                #expect(found.ids == [key.text])
                #expect(!found.hasRepairs)
            }
            #expect(try await fixture.leftovers() == before)
        }
    }

    @Test func `a database without the current schema is refused and left as it is`() async throws {
        let fixture = try await FleetEnvironment()
        for _ in 0..<2 {
            await #expect {
                try await PostgresStore.openUnchanged(url: fixture.databaseURL, onNotice: { _ in })
            } throws: { error in
                guard case PostgresStoreError.olderSchema(found: 0, _) = error else { return false }
                return true
            }
        }
        try await fixture.start().stop()
        let store = try await PostgresStore.openUnchanged(
            url: fixture.databaseURL, onNotice: { _ in })
        #expect(try await store.byteStoreIdentity()?.hasPrefix("s3:") == true)
        try await store.close()
    }
}

extension TestNode {
    fileprivate func check(
        scrubbing: Bool = false, repairing: Bool = false
    ) async throws -> [CheckFinding] {
        let findings = Shared<[CheckFinding]>([])
        let tally = CheckTally { finding in findings.update { $0.append(finding) } }
        let scrubber = ByteScrubber(
            pool: BlockingPool(threadCount: 1), bytesPerSecond: nil, bufferCapacity: 300)
        try await StoreCheck(
            rows: metadata, bytes: bytes.inspection,
            repairs: repairing ? RepairedStores(metadata: metadata, bytes: nil) : nil,
            scrubber: scrubbing ? scrubber : nil, tally: tally
        ).run()
        return findings.value
    }
}
