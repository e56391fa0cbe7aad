import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// Chunks whose bytes are already in the bucket, which the store copies by itself.
@Suite(.timeLimit(.minutes(1))) struct S3CopyTests {
    /// Start of the partial upload in the final one, in the middle of a chunk: three of five chunks
    /// lie completely within it.
    static let offset = SmallUpload.chunkByteCount * 3 / 2
    static let copiedCount = 3

    /// A partial upload in the bucket, and the final upload that it belongs to.
    struct Environment {
        let stub: S3Stub
        let fixture: S3Environment
        let store: S3Store
        var whole: SmallUpload
        var source: CopySource
        /// Number of uploaded parts before the final upload.
        let sentCount: Int

        init(_ stub: S3Stub, _ fixture: S3Environment) async throws {
            self.stub = stub
            self.fixture = fixture
            store = try fixture.open()
            var part = SmallUpload(byteCount: SmallUpload.chunkByteCount * 7 / 2)
            try await part.saveAll(in: store)
            try await store.assemble(part.file)
            let area = try await store.openStaging(part.key)
            source = try #require(try await area.copySource())
            await area.close()
            whole = SmallUpload(content: Array(repeating: 7, count: offset) + part.content)
            sentCount = try await stub.state().count(.uploadPart)
        }

        /// Sends the final upload and expects it in the bucket.
        mutating func send() async throws {
            whole = SmallUpload(content: whole.content)
            let area = try await store.openStaging(whole.key)
            area.noteCopies(of: source, at: Int64(offset))
            for index in 0..<5 { try await whole.save(index, in: area) }
            await area.close()
            let name = try await whole.promote(in: store)
            #expect(try await store.content(of: name) == whole.content)
        }

        /// Expects so many copy requests, besides the one that probes the store, and so many
        /// uploaded parts of the final upload.
        func expect(
            copies: Int, sent: Int, sourceLocation: SourceLocation = #_sourceLocation
        ) async throws {
            let state = try await stub.state()
            #expect(state.count(.uploadPartCopy) - 1 == copies, sourceLocation: sourceLocation)
            #expect(state.count(.uploadPart) - sentCount == sent, sourceLocation: sourceLocation)
        }

        func end() async {
            await store.close()
            await stub.stop()
        }
    }

    private func makeEnvironment(
        timeout: Duration = .seconds(20), copyPause: Duration = .seconds(600)
    ) async throws -> Environment {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        var fixture = try S3Environment(on: stub)
        fixture.timeout = timeout
        fixture.copyPause = copyPause
        return try await Environment(stub, fixture)
    }

    @Test func `chunks that are completely in the bucket are not sent again`() async throws {
        var fixture = try await makeEnvironment()
        try await fixture.send()
        try await fixture.expect(copies: Self.copiedCount, sent: 2)
        #expect(try await fixture.stub.state().errors == [:])
        await fixture.end()
    }

    @Test func `a finished file is a copy source, too`() async throws {
        var fixture = try await makeEnvironment()
        var file = SmallUpload(content: Array(fixture.whole.content[Self.offset...]))
        try await file.saveAll(in: fixture.store)
        let reader = try await fixture.store.openBlob(try await file.promote(in: fixture.store))
        fixture.source = try #require(await reader.copySource())
        await reader.close()
        try await fixture.send()
        #expect(try await fixture.stub.state().count(.uploadPartCopy) - 1 == Self.copiedCount)
        await fixture.end()
    }

    @Test func `chunks are sent when the copy source has other bytes`() async throws {
        var fixture = try await makeEnvironment()
        var other = SmallUpload(content: Array(fixture.whole.content[Self.offset...].reversed()))
        try await other.saveAll(in: fixture.store)
        try await fixture.store.assemble(other.file)
        let area = try await fixture.store.openStaging(other.key)
        fixture.source = try #require(try await area.copySource())
        await area.close()
        try await fixture.send()
        // After one try the store trusts nothing of the source.
        try await fixture.expect(copies: 1, sent: 5 + 4)
        await fixture.end()
    }

    @Test func `a copy source that was replaced is not copied`() async throws {
        var fixture = try await makeEnvironment()
        fixture.source.tag = "\"another\""
        try await fixture.send()
        try await fixture.expect(copies: 1, sent: 5)
        #expect(try await fixture.stub.state().errors == ["PreconditionFailed": 1])
        await fixture.end()
    }

    @Test func `a store that does not support copies is asked once`() async throws {
        var fixture = try await makeEnvironment()
        try await fixture.stub.fail(.uploadPartCopy, with: .status(501, "NotImplemented"))
        try await fixture.send()
        try await fixture.send()
        try await fixture.expect(copies: 0, sent: 10)
        await fixture.end()
    }

    @Test(arguments: [
        S3Fault.Action.status(503, "SlowDown"), .dropUnread, .dropUndone, .dropDone,
        .errorInOK("InternalError"),
    ])
    func `a copy succeeds after transient failures of the store`(
        _ action: S3Fault.Action
    ) async throws {
        var fixture = try await makeEnvironment()
        try await fixture.stub.fail(.uploadPartCopy, times: 2, after: 1, with: action)
        try await fixture.send()
        try await fixture.expect(copies: Self.copiedCount + 2, sent: 2)
        await fixture.end()
    }

    @Test(arguments: [S3Fault.Action.status(403, "AccessDenied"), .errorInOK("AccessDenied")])
    func `chunks are sent to a store that refuses to copy`(
        _ action: S3Fault.Action
    ) async throws {
        var fixture = try await makeEnvironment()
        try await fixture.stub.fail(.uploadPartCopy, after: 1, with: action)
        try await fixture.send()
        try await fixture.expect(copies: 1, sent: 5)
        await fixture.end()
    }

    @Test func `a store whose copy probe failed is probed again`() async throws {
        var fixture = try await makeEnvironment(copyPause: .zero)
        try await fixture.stub.fail(.uploadPartCopy, times: 1, with: .status(403, "AccessDenied"))
        try await fixture.send()
        // The failed probe, and, after the probe that succeeds, the remaining chunks.
        try await fixture.expect(copies: 1 + Self.copiedCount - 1, sent: 2 + 1)
        let state = try await fixture.stub.state()
        #expect(state.objects.filter { $0.key.contains("/health/") } == [])
        #expect(state.uploads.filter { $0.key.contains("/health/") } == [])
        await fixture.end()
    }

    @Test func `chunks are sent when the copy source is gone`() async throws {
        var fixture = try await makeEnvironment()
        fixture.source.name += "-gone"
        try await fixture.send()
        try await fixture.expect(copies: 1, sent: 5)
        await fixture.end()
    }

    /// The copy completes after the bytes were sent instead, although no request waits for it.
    @Test func `a late copy does not disturb the upload`() async throws {
        var fixture = try await makeEnvironment(timeout: .seconds(2))
        try await fixture.stub.fail(.uploadPartCopy, times: 1, after: 1, with: .hang(.seconds(3)))
        fixture.whole = SmallUpload(content: fixture.whole.content)
        let area = try await fixture.store.openStaging(fixture.whole.key)
        area.noteCopies(of: fixture.source, at: Int64(Self.offset))
        for index in 0..<5 { try await fixture.whole.save(index, in: area) }
        await area.close()
        // Waits until the store has completed the hanging copy; nothing else shows when an
        // abandoned request ends.
        try await Task.sleep(for: .seconds(2))
        let name = try await fixture.whole.promote(in: fixture.store)
        #expect(try await fixture.store.content(of: name) == fixture.whole.content)
        try await fixture.expect(copies: 1, sent: 5)
        await fixture.end()
    }

    @Test(arguments: SharedServers.Kind.allCases)
    func `every store has the right bytes, whether it copies or not`(
        _ kind: SharedServers.Kind
    ) async throws {
        let fixture = try S3Environment(on: try await kind.server)
        let store = try fixture.open()
        // Sizes that S3 accepts.
        let content = SmallUpload(byteCount: 13 << 20).content
        let (half, least) = (content.count / 2 + 1000, Int64(5 << 20))
        var parts: [(area: any StagingArea, start: Int)] = []
        for range in [0..<half, half..<content.count] {
            let key = StagingKey(.random())
            let file = try await Self.save(
                Array(content[range]), as: key, in: store, chunkSize: least, copies: [])
            try await store.assemble(file)
            parts.append((try await store.openStaging(key), range.lowerBound))
        }
        var sources: [(CopySource, Int64)] = []
        for part in parts {
            sources.append((try #require(try await part.area.copySource()), Int64(part.start)))
            await part.area.close()
        }
        let whole = try await Self.save(
            content, as: StagingKey(.random()), in: store, chunkSize: least, copies: sources)
        let digest = SHA256Hasher.digest(of: content)
        let location = try await store.promote(whole, to: digest)
        let name = BlobName(digest: digest, byteCount: Int64(content.count), location: location)
        #expect(try await store.content(of: name) == content)
        await store.close()
        withExtendedLifetime(fixture) {}
    }

    private static func save(
        _ content: [UInt8], as key: StagingKey, in store: S3Store, chunkSize: Int64,
        copies: [(source: CopySource, offset: Int64)]
    ) async throws -> StagedFile {
        let area = try await store.openStaging(key)
        for copy in copies { area.noteCopies(of: copy.source, at: copy.offset) }
        var file = StagedFile(key: key, byteCount: Int64(content.count), chunks: [])
        for start in stride(from: 0, to: file.byteCount, by: Int64.Stride(chunkSize)) {
            let end = min(start + chunkSize, file.byteCount)
            let bytes = Array(content[Int(start)..<Int(end)])
            try await area.write(SampleBytes.buffer(bytes), at: start)
            let fixture = ChunkRange(
                index: file.chunks.count, start: start, byteCount: end - start,
                isWholeFile: end - start == file.byteCount)
            let digest = SHA256Hasher.digest(of: bytes)
            let location = try await area.saveChunk(fixture, digest: digest, after: nil)
            file.chunks.append(
                CommittedChunk(
                    index: fixture.index, byteCount: fixture.byteCount, digest: digest,
                    location: location))
        }
        await area.close()
        return file
    }
}
