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
    struct Scene {
        let stub: S3Stub
        let place: S3Place
        let store: S3Store
        var whole: SmallUpload
        var source: CopySource
        /// Number of uploaded parts before the final upload.
        let sentCount: Int

        init(_ stub: S3Stub, _ place: S3Place) async throws {
            self.stub = stub
            self.place = place
            store = try place.open()
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

    private func makeScene(
        patience: Duration = .seconds(20), copyPause: Duration = .seconds(600)
    ) async throws -> Scene {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        var place = try S3Place(on: stub)
        place.patience = patience
        place.copyPause = copyPause
        return try await Scene(stub, place)
    }

    @Test func `chunks that are completely in the bucket are not sent again`() async throws {
        var scene = try await makeScene()
        try await scene.send()
        try await scene.expect(copies: Self.copiedCount, sent: 2)
        #expect(try await scene.stub.state().errors == [:])
        await scene.end()
    }

    @Test func `a finished file is a copy source, too`() async throws {
        var scene = try await makeScene()
        var file = SmallUpload(content: Array(scene.whole.content[Self.offset...]))
        try await file.saveAll(in: scene.store)
        let reader = try await scene.store.openBlob(try await file.promote(in: scene.store))
        scene.source = try #require(await reader.copySource())
        await reader.close()
        try await scene.send()
        #expect(try await scene.stub.state().count(.uploadPartCopy) - 1 == Self.copiedCount)
        await scene.end()
    }

    @Test func `chunks are sent when the copy source has other bytes`() async throws {
        var scene = try await makeScene()
        var other = SmallUpload(content: Array(scene.whole.content[Self.offset...].reversed()))
        try await other.saveAll(in: scene.store)
        try await scene.store.assemble(other.file)
        let area = try await scene.store.openStaging(other.key)
        scene.source = try #require(try await area.copySource())
        await area.close()
        try await scene.send()
        // After one try the store trusts nothing of the source.
        try await scene.expect(copies: 1, sent: 5 + 4)
        await scene.end()
    }

    @Test func `a copy source that was replaced is not copied`() async throws {
        var scene = try await makeScene()
        scene.source.tag = "\"another\""
        try await scene.send()
        try await scene.expect(copies: 1, sent: 5)
        #expect(try await scene.stub.state().errors == ["PreconditionFailed": 1])
        await scene.end()
    }

    @Test func `a store that does not support copies is asked once`() async throws {
        var scene = try await makeScene()
        try await scene.stub.fail(.uploadPartCopy, with: .status(501, "NotImplemented"))
        try await scene.send()
        try await scene.send()
        try await scene.expect(copies: 0, sent: 10)
        await scene.end()
    }

    @Test(arguments: [
        S3Fault.Action.status(503, "SlowDown"), .dropUnread, .dropUndone, .dropDone,
        .errorInOK("InternalError"),
    ])
    func `a copy succeeds after transient failures of the store`(
        _ action: S3Fault.Action
    ) async throws {
        var scene = try await makeScene()
        try await scene.stub.fail(.uploadPartCopy, times: 2, after: 1, with: action)
        try await scene.send()
        try await scene.expect(copies: Self.copiedCount + 2, sent: 2)
        await scene.end()
    }

    @Test(arguments: [S3Fault.Action.status(403, "AccessDenied"), .errorInOK("AccessDenied")])
    func `chunks are sent to a store that refuses to copy`(
        _ action: S3Fault.Action
    ) async throws {
        var scene = try await makeScene()
        try await scene.stub.fail(.uploadPartCopy, after: 1, with: action)
        try await scene.send()
        try await scene.expect(copies: 1, sent: 5)
        await scene.end()
    }

    @Test func `a store whose copy probe failed is probed again`() async throws {
        var scene = try await makeScene(copyPause: .zero)
        try await scene.stub.fail(.uploadPartCopy, times: 1, with: .status(403, "AccessDenied"))
        try await scene.send()
        // The failed probe, and, after the probe that succeeds, the remaining chunks.
        try await scene.expect(copies: 1 + Self.copiedCount - 1, sent: 2 + 1)
        let state = try await scene.stub.state()
        #expect(state.objects.filter { $0.key.contains("/health/") } == [])
        #expect(state.uploads.filter { $0.key.contains("/health/") } == [])
        await scene.end()
    }

    @Test func `chunks are sent when the copy source is gone`() async throws {
        var scene = try await makeScene()
        scene.source.name += "-gone"
        try await scene.send()
        try await scene.expect(copies: 1, sent: 5)
        await scene.end()
    }

    /// The copy completes after the bytes were sent instead, although no request waits for it.
    @Test func `a late copy does not disturb the upload`() async throws {
        var scene = try await makeScene(patience: .seconds(2))
        try await scene.stub.fail(.uploadPartCopy, times: 1, after: 1, with: .hang(.seconds(3)))
        scene.whole = SmallUpload(content: scene.whole.content)
        let area = try await scene.store.openStaging(scene.whole.key)
        area.noteCopies(of: scene.source, at: Int64(Self.offset))
        for index in 0..<5 { try await scene.whole.save(index, in: area) }
        await area.close()
        // Waits until the store has completed the hanging copy; nothing else shows when an
        // abandoned request ends.
        try await Task.sleep(for: .seconds(2))
        let name = try await scene.whole.promote(in: scene.store)
        #expect(try await scene.store.content(of: name) == scene.whole.content)
        try await scene.expect(copies: 1, sent: 5)
        await scene.end()
    }

    @Test(arguments: SharedServers.Kind.allCases)
    func `every store has the right bytes, whether it copies or not`(
        _ kind: SharedServers.Kind
    ) async throws {
        let place = try S3Place(on: try await kind.server)
        let store = try place.open()
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
        withExtendedLifetime(place) {}
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
            let place = ChunkRange(
                index: file.chunks.count, start: start, byteCount: end - start,
                isWholeFile: end - start == file.byteCount)
            let digest = SHA256Hasher.digest(of: bytes)
            let location = try await area.saveChunk(place, digest: digest, after: nil)
            file.chunks.append(
                CommittedChunk(
                    index: place.index, byteCount: place.byteCount, digest: digest,
                    location: location))
        }
        await area.close()
        return file
    }
}
