import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct AppendTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    @Test(arguments: [1, 999, 1000, 1001, 2000, 2500], [true, false])
    func `one append makes the file, its size declared before or at the end`(
        byteCount: Int, sized: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(byteCount), sized: sized)
        let end = try await node.append(upload.content, to: upload, at: 0, completes: true)
        #expect(end == Int64(byteCount))
        #expect(try await node.status(of: upload).fileSize == Int64(byteCount))
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
        // The service keeps digests of its chunks, as for every file.
        let digests = try await node.engine.chunkDigests(of: file)
        let expected = (0..<upload.chunkCount).map { SHA256Hasher.digest(of: upload.chunk($0)) }
        #expect(digests == expected)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `appends of any lengths, some of them interrupted, make the file`(seed: UInt64)
        async throws
    {
        var generator = SplitMix64(seed: seed)
        var node = try await fixture.start()
        let content = sampleBytes(Int.random(in: 1...6000, using: &generator), seed: seed)
        let upload = try await node.begin(content, sized: Bool.random(using: &generator))
        var offset = 0
        while offset < content.count {
            let count = min(Int.random(in: 1...1700, using: &generator), content.count - offset)
            let piece = content[offset..<offset + count]
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                await #expect(throws: EngineError.self) {
                    try await node.append(
                        piece, to: upload, at: offset, announcing: count + 1, ending: .breaksOff)
                }
            case 1: node = try await node.restart()
            default:
                let end = try await node.append(piece, to: upload, at: offset)
                #expect(end == Int64(offset + count))
            }
            // The client goes on at the server's offset, which never goes back.
            let known = Int(try await node.offset(of: upload))
            #expect(known >= offset)
            offset = known
        }
        _ = try await node.append([], to: upload, at: content.count, completes: true)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == content)
    }

    @Test(arguments: [1, 999, 1000, 1001, 1300, 2499], [false, true])
    func `an append that breaks off keeps every byte that came`(
        count: Int, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.append(
                upload.content.prefix(count), to: upload, at: 0, announcing: 2500,
                ending: .breaksOff)
        }
        if afterRestart { node = try await node.restart() }
        #expect(try await node.offset(of: upload) == Int64(count))
        let end = try await node.append(upload.content.dropFirst(count), to: upload, at: count)
        #expect(end == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: [0, 299, 301, 1000, 2500, -1, Int.max])
    func `an append anywhere but at the end is refused with the offset`(offset: Int) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        let error = await #expect(throws: EngineError.self) {
            try await node.append([1], to: upload, at: offset)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 300)
        #expect(try await node.offset(of: upload) == 300)
    }

    @Test func `an append of nothing changes nothing`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        #expect(try await node.append([], to: upload, at: 0) == 0)
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        #expect(try await node.append([], to: upload, at: 300) == 300)
        #expect(try await node.status(of: upload).receivedBytes == 300)
    }

    @Test func `an append announced beyond the declared size is refused before it is read`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let body = ScriptedBody(sampleBytes(2501), announcing: 2501)
        await #expect(throws: EngineError(.fileTooLarge)) {
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        #expect(body.watch.readerCount == 0)
        await #expect(throws: EngineError(.fileTooLarge)) {
            try await node.append([], to: upload, at: 0, announcing: .max)
        }
    }

    @Test func `an append that runs past the end is refused, and the file's own bytes stay`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.append(upload.content, to: upload, at: 0, ending: .goesOn)
        }
        #expect(try await node.offset(of: upload) == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append of unknown size that outgrows the limit is too large`() async throws {
        let fixture = try EngineEnvironment { $0.maxFileSize = 2500 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content, to: upload, at: 0, ending: .goesOn)
        }
        let offset = try await node.offset(of: upload)
        #expect(error?.code == .fileTooLarge)
        #expect(offset <= 2500)
    }

    @Test func `the size is declared by an append that completes, and then fixed`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1300), sized: false)
        #expect(try await node.status(of: upload).fileSize == nil)
        #expect(try await node.status(of: upload).totalChunks == nil)
        _ = try await node.append(upload.content.prefix(700), to: upload, at: 0)
        _ = try await node.append(
            upload.content.dropFirst(700), to: upload, at: 700, completes: true)
        #expect(try await node.status(of: upload).fileSize == 1300)
        #expect(try await node.status(of: upload).totalChunks == 2)
        await #expect(throws: EngineError.self) { try await node.append([1], to: upload, at: 1300) }
    }

    @Test func `a file of unknown size may turn out to be empty`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin([], sized: false)
        #expect(try await node.append([], to: upload, at: 0, completes: true) == 0)
        #expect(try await node.finish(upload).byteCount == 0)
    }

    @Test(arguments: [300, 1000, 1300])
    func `completing short of the declared size is a mismatch and loses nothing`(
        count: Int
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let error = await #expect(throws: EngineError.self) {
            try await node.append(
                upload.content.prefix(count), to: upload, at: 0, completes: true)
        }
        #expect([.sizeMismatch, .lengthMismatch].contains(error?.code))
        let known = try await node.offset(of: upload)
        #expect(known == Int64(count))
        let offset = Int(try await node.offset(of: upload))
        _ = try await node.append(upload.content.dropFirst(offset), to: upload, at: offset)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }
}
