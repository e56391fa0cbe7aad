import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R18, R63–R67.
@Suite(.timeLimit(.minutes(1))) struct FinalizeTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    @Test func `a complete session becomes a file with everything that the client declared`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        fixture.clock.advance(by: .seconds(5))
        let file = try await node.finish(upload, expecting: upload.digest)
        #expect(file.fileName == "ship's log.txt")
        #expect(file.mimeType == "text/plain")
        #expect(file.byteCount == 2500)
        #expect(file.digest == upload.digest)
        #expect(file.chunkSize == 1000)
        #expect(file.owner == .tester)
        #expect(file.sessionID == upload.id)
        #expect(file.createdAt == fixture.clock.now())
        #expect(file.etag == "\"sha256-\(upload.digest.hex)\"")
        #expect(try await node.engine.file(file.id, owner: .tester) == file)
        let status = try await node.status(of: upload)
        #expect(status.state == .completed)
        #expect(status.remoteFileId == file.id)
        #expect(status.fileHashSha256 == upload.digest)
        #expect(status.partialChunks == [])
    }

    /// R93.
    @Test func `a file knows the digests of its chunks`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let digests = try await node.engine.chunkDigests(of: try await node.finish(upload))
        #expect(digests == (0..<3).map { SHA256Hasher.digest(of: upload.chunk($0)) })
    }

    @Test(
        arguments: [
            ([], [0...5]), ([0], [1...5]), ([5], [0...4]), ([1, 3], [0...0, 2...2, 4...5]),
            ([0, 1, 2, 3, 4], [5...5]),
        ] as [([Int], [ClosedRange<Int>])])
    func `missing chunks are listed, and the session goes on`(
        received: [Int], missing: [ClosedRange<Int>]
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5500))
        for index in received { try await node.put(index, of: upload) }
        await node.breakOff(missing[0].lowerBound, of: upload, after: 10)
        let error = await #expect(throws: EngineError.self) { try await node.finish(upload) }
        #expect(error?.code == .missingChunks)
        #expect(error?.missing == missing)
        for index in missing.joined() { try await node.put(index, of: upload) }
        #expect(try await node.finish(upload).digest == upload.digest)
    }

    /// R67, R79, R119: the session stays open and can still be finished.
    @Test func `another expected digest is a mismatch, and the right one finishes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let wrong = SHA256Hasher.digest(of: [1])
        let error = await #expect(throws: EngineError.self) {
            try await node.finish(upload, expecting: wrong)
        }
        #expect(error?.code == .integrityMismatch)
        #expect(error?.expectedDigest == wrong)
        #expect(error?.actualDigest == upload.digest)
        let status = try await node.status(of: upload)
        #expect(status.state == .open)
        #expect(status.receivedChunks == [0, 1, 2])
        #expect(try await node.finish(upload, expecting: upload.digest).digest == upload.digest)
    }

    /// R51.
    @Test func `the digest declared at the start is compared with the bytes`() async throws {
        let node = try await fixture.start()
        let good = try await node.begin(
            sampleBytes(1500), declaring: SHA256Hasher.digest(of: sampleBytes(1500)))
        try await node.putAll(of: good)
        #expect(try await node.finish(good).digest == good.digest)

        let wrong = SHA256Hasher.digest(of: [1])
        let bad = try await node.begin(sampleBytes(1500), declaring: wrong)
        try await node.putAll(of: bad)
        // The declared digest is wrong, so every finalize fails: without a digest, with the right
        // one, and with the wrong one again.
        for expected in [nil, bad.digest, wrong] {
            await #expect(throws: EngineError(.integrityMismatch)) {
                try await node.finish(bad, expecting: expected)
            }
        }
        #expect(try await node.status(of: bad).state == .open)
    }

    @Test(arguments: [false, true])
    func `a repeated finalize gives the same answer`(afterRestart: Bool) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        if afterRestart { node = try await node.restart() }
        #expect(try await node.finish(upload) == file)
        #expect(try await node.finish(upload, expecting: upload.digest) == file)
        await #expect(throws: EngineError(.integrityMismatch)) {
            try await node.finish(upload, expecting: SHA256Hasher.digest(of: [1]))
        }
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test(arguments: [false, true])
    func `a repeated finalize of a deleted file answers that the file is gone`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        try await node.engine.deleteFile(file.id, owner: .tester)
        if afterRestart { node = try await node.restart() }
        for expected in [nil, upload.digest] {
            await #expect(throws: EngineError(.fileGone)) {
                try await node.finish(upload, expecting: expected)
            }
        }
        #expect(try await node.engine.files(of: .tester, after: nil, limit: 9) == [])
    }

    @Test func `concurrent finalize requests make one file`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let files = try await withThrowingTaskGroup(of: FileRecord.self) { group in
            for _ in 0..<32 { group.addTask { try await node.finish(upload) } }
            return try await group.reduce(into: Set<FileRecord>()) { $0.insert($1) }
        }
        #expect(files.count == 1)
        let listed = try await node.engine.files(of: .tester, after: nil, limit: 100)
        #expect(Set(listed) == files)
    }

    @Test func `a file of no bytes finalizes at once`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin([], declaring: SHA256Hasher.digest(of: []))
        let file = try await node.finish(upload)
        #expect(file.byteCount == 0)
        #expect(file.digest == SHA256Hasher.digest(of: []))
        #expect(try await node.content(of: file) == [])
        #expect(try await node.engine.chunkDigests(of: file) == [])
        let again = try await node.begin([])
        #expect(try await node.finish(again).id != file.id)
    }

    @Test func `a session without a declared size cannot be finalized`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        _ = try await node.append(upload.content, to: upload, at: 0)
        await #expect(throws: EngineError(.sizeMismatch)) { try await node.finish(upload) }
        #expect(try await node.status(of: upload).state == .open)
    }

    @Test func `a completed session accepts no more bytes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        // R122: a chunk that it has is still "already received".
        #expect(try await !node.put(1, of: upload).isCreated)
        await #expect(throws: EngineError(.sessionClosed)) {
            try await node.append([], to: upload, at: 2500)
        }
        await #expect(throws: EngineError(.sessionClosed)) {
            try await node.engine.cancelSession(upload.id, owner: upload.owner)
        }
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test(arguments: [HookedMetadata.Call.beginFinalize, .completeFinalize])
    func `a failed finalize reports the failure, and a repeated one succeeds`(
        call failing: HookedMetadata.Call
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        node.metadata.before { call in
            if call == failing { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) { try await node.finish(upload) }
        #expect(try await node.engine.files(of: .tester, after: nil, limit: 9) == [])
        node.metadata.before(nil)
        let file = try await node.finish(upload)
        #expect(try await node.content(of: file) == upload.content)
        #expect(try await node.status(of: upload).remoteFileId == file.id)
    }
}
