import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Sizes that a client declares with an append.
@Suite(.timeLimit(.minutes(1))) struct DeclaredSizeTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func append(
        _ bytes: some Sequence<UInt8>, to upload: Upload, at offset: Int, declaring size: Int64,
        on node: Node, completes: Bool = false, announcing count: Int? = nil,
        ending: ScriptedBody.Ending = .ends
    ) async throws -> Int64 {
        try await node.engine.append(
            AppendPut(offset: Int64(offset), completes: completes, declaredSize: size),
            to: upload.id, owner: upload.owner,
            body: ScriptedBody(bytes, announcing: count, ending: ending))
    }

    @Test(arguments: [0, 1, 999, 1000, 1001, 2000, 2300], [false, true])
    func `any append may declare the size, and the file is complete at it`(
        byteCount: Int, atTheEnd: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(byteCount), sized: false)
        if atTheEnd { _ = try await node.append(upload.content, to: upload, at: 0) }
        let start = atTheEnd ? byteCount : 0
        let end = try await append(
            upload.content.dropFirst(start), to: upload, at: start, declaring: Int64(byteCount),
            on: node)
        #expect(end == Int64(byteCount))
        node = try await node.restart()
        let file = try await node.engine.finish(upload.id, owner: upload.owner)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a declared size is durable although the body breaks off`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await append(
                upload.content.prefix(700), to: upload, at: 0, declaring: 2300, on: node,
                ending: .breaksOff)
        }
        node = try await node.restart()
        let view = try await node.engine.uploadView(of: upload.id, owner: upload.owner)
        #expect(view.fileSize == 2300)
        #expect(view.offset == 700)
    }

    @Test(arguments: [0, 300, 1300])
    func `a second, different size is refused and changes nothing`(offset: Int) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        _ = try await append(
            upload.content.prefix(offset), to: upload, at: 0, declaring: 2300, on: node)
        for other in [2299, 2301, 0, -1] as [Int64] {
            await #expect(throws: EngineError(.sizeMismatch)) {
                try await append([1], to: upload, at: offset, declaring: other, on: node)
            }
        }
        let view = try await node.engine.uploadView(of: upload.id, owner: upload.owner)
        #expect(view.fileSize == 2300)
        #expect(view.offset == Int64(offset))
        let end = try await append(
            upload.content.dropFirst(offset), to: upload, at: offset, declaring: 2300, on: node)
        #expect(end == 2300)
    }

    @Test func `a size below the received bytes is refused`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        _ = try await node.append(upload.content.prefix(1300), to: upload, at: 0)
        await #expect(throws: EngineError(.sizeMismatch)) {
            try await append([], to: upload, at: 1300, declaring: 1299, on: node)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
    }

    @Test func `a size beyond the limit, and a body beyond the size, are too large`() async throws {
        let fixture = try EngineEnvironment { $0.maxFileSize = 2500 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        await #expect(throws: EngineError(.fileTooLarge)) {
            try await append([1], to: upload, at: 0, declaring: 2501, on: node)
        }
        await #expect(throws: EngineError(.fileTooLarge)) {
            try await append(
                upload.content, to: upload, at: 0, declaring: 2299, on: node, announcing: 2300)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
    }

    @Test func `an append at a wrong offset declares no size`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        await #expect(throws: EngineError(.offsetMismatch)) {
            try await append([1], to: upload, at: 1, declaring: 2300, on: node)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
    }

    @Test func `a size that does not fit on the disk is refused before the body`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        fixture.disk.pretendAvailable(2299)
        let body = ScriptedBody(upload.content)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.engine.append(
                AppendPut(offset: 0, declaredSize: 2300), to: upload.id, owner: upload.owner,
                body: body)
        }
        #expect(body.watch.readerCount == 0)
        #expect(try await node.status(of: upload).fileSize == nil)
    }

    @Test func `completing before the declared size is a mismatch`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        await #expect(throws: EngineError(.sizeMismatch)) {
            try await append(
                upload.content.prefix(1300), to: upload, at: 0, declaring: 2300, on: node,
                completes: true)
        }
        #expect(try await node.offset(of: upload) == 1300)
    }

    /// The size is durable before the last chunk is. The next process commits that chunk.
    @Test func `an upload completes although its process ended before the last chunk's row`()
        async throws
    {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2300), sized: false)
        _ = try await node.append(upload.content, to: upload, at: 0)
        node.metadata.before { call in
            if call == .commit { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) {
            try await append([], to: upload, at: 2300, declaring: 2300, on: node)
        }
        node = try await node.restart()
        let view = try await node.engine.uploadView(of: upload.id, owner: upload.owner)
        #expect(view.fileSize == 2300)
        #expect(view.offset == 2300)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }
}
