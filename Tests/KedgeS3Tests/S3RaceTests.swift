import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// Several nodes, repeated attempts, and bytes in unexpected places.
struct S3RaceTests {
    @Test(.timeLimit(.minutes(1)))
    func `nodes that begin at once send their parts to one upload`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let stores = try (0..<4).map { _ in try fixture.open() }
        let empty = SmallUpload(byteCount: 4 * SmallUpload.chunkByteCount)
        var upload = empty
        upload.chunks = try await withThrowingTaskGroup { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    var part = empty
                    let area = try await store.openStaging(part.key)
                    try await part.save(index, in: area)
                    await area.close()
                    return part.chunks
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(try await stub.state().uploads.map(\.parts.count) == [4])
        let complete = upload
        // All nodes finish the same file.
        try await withThrowingTaskGroup { group in
            for store in stores { group.addTask { try await store.assemble(complete.file) } }
            try await group.waitForAll()
        }
        let name = try await upload.promote(in: stores[0])
        #expect(try await stores[1].content(of: name) == upload.content)
        for store in stores { await store.close() }
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a late copy of a part does not harm the file`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1)
        try await upload.saveAll(in: store)
        var late = upload
        try await late.saveAll(in: fixture.open())
        // The recorded tags differ from those that the store now has.
        let name = try await upload.promote(in: store)
        #expect(try await store.content(of: name) == upload.content)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a part with other bytes is found before the file is made`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1)
        try await upload.saveAll(in: store)
        let area = try await store.openStaging(upload.key)
        let other = [UInt8](repeating: 9, count: 1)
        let start = Int64(SmallUpload.chunkByteCount)
        try await area.write(SampleBytes.buffer(other), at: start)
        _ = try await area.saveChunk(
            upload.range(1), digest: SHA256Hasher.digest(of: other), after: nil)
        let saved = upload
        await #expect(throws: ByteStoreError.notFound) { try await saved.promote(in: store) }
        await area.close()
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a saved partial counts, and not older bytes on the node`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let (store, other) = (try fixture.open(), try fixture.open())
        var upload = SmallUpload(byteCount: 3000)
        let (area, elsewhere) = (
            try await store.openStaging(upload.key), try await other.openStaging(upload.key)
        )
        // Bytes of a stream that were never saved.
        try await area.write(SampleBytes.buffer([UInt8](repeating: 7, count: 2000)), at: 0)
        try await upload.write(0..<1000, ofChunk: 0, to: elsewhere)
        let partial = try await elsewhere.savePartial(
            upload.range(0, byteCount: 1000), after: nil)
        try await upload.write(1000..<3000, ofChunk: 0, to: area)
        try await upload.saveWritten(0, in: area, after: partial)
        let name = try await upload.promote(in: store)
        #expect(try await store.content(of: name) == upload.content)
        await area.close()
        await store.close()
        await other.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `many small pieces are merged, and the chunk is complete`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        var upload = SmallUpload(byteCount: 40 * 100)
        var location: String?
        for step in 0..<39 {
            // Each piece arrives at another node.
            let store = try fixture.open()
            let area = try await store.openStaging(upload.key)
            try await upload.write(step * 100..<(step + 1) * 100, ofChunk: 0, to: area)
            location = try await area.savePartial(
                upload.range(0, byteCount: (step + 1) * 100), after: location)
            await area.close()
            await store.close()
        }
        let pieces = try #require(PieceList(location, from: 0)).pieces
        #expect(pieces.count == 7)
        #expect(pieces.first?.byteCount == 3300)
        let store = try fixture.open()
        let area = try await store.openStaging(upload.key)
        try await upload.write(3900..<4000, ofChunk: 0, to: area)
        try await upload.saveWritten(0, in: area, after: location)
        let name = try await upload.promote(in: store)
        #expect(try await store.content(of: name) == upload.content)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a missing or damaged piece is reported as not found`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        let upload = SmallUpload(byteCount: 2000)
        let area = try await store.openStaging(upload.key)
        try await upload.write(0..<1000, ofChunk: 0, to: area)
        let partial = try await area.savePartial(upload.range(0, byteCount: 1000), after: nil)
        let key = try #require(try await stub.state().objects.first?.key)
        let next = try await fixture.open().openStaging(upload.key)
        try await upload.write(1000..<2000, ofChunk: 0, to: next)
        for damage in [S3Body([UInt8](repeating: 1, count: 1000)), nil] {
            if let damage {
                _ = try await store.client.putObject(key, damage)
            } else {
                try await store.client.deleteObject(key)
            }
            await #expect(throws: ByteStoreError.notFound) {
                var upload = upload
                try await upload.saveWritten(0, in: next, after: partial)
            }
        }
        await area.close()
        await next.close()
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a partial is saved although its task is cancelled`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        let upload = SmallUpload(byteCount: 2000)
        let area = try await store.openStaging(upload.key)
        try await upload.write(0..<1000, ofChunk: 0, to: area)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await area.savePartial(upload.range(0, byteCount: 1000), after: nil)
        }
        #expect(try await task.value != nil)
        #expect(try await stub.state().objects.map(\.byteCount) == [1000])
        await area.close()
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a spool beyond its budget releases saved chunks, and the object replaces them`()
        async throws
    {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open(spoolBudget: 1000)
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 500)
        let area = try await store.openStaging(upload.key)
        try await upload.save(0, in: area)
        // The sender of the chunk may hold it a moment longer than its answer takes.
        #expect(try await eventually(within: .seconds(30)) { store.budget.usedByteCount == 0 })
        await #expect(throws: ByteStoreError.notAssembled) {
            try await area.bytes(at: 0, count: 10)
        }
        try await upload.save(1, in: area)
        #expect(
            try await area.bytes(at: Int64(SmallUpload.chunkByteCount), count: 10)
                == Array(upload.content.suffix(500).prefix(10)))
        try await store.assemble(upload.file)
        #expect(try await area.bytes(at: 0, count: 10) == Array(upload.content.prefix(10)))
        await area.close()
        await store.close()
        await stub.stop()
    }
}
