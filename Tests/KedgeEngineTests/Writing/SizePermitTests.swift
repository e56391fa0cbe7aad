import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Limits on the size of a file that the permission of its session sets.
@Suite(.timeLimit(.minutes(1))) struct SizePermitTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func new(_ size: Int64?, from min: Int64? = nil, to max: Int64?) -> NewSession {
        var new = NewSession(fileName: "a.bin", fileSize: size, chunkSize: 1000)
        new.permit.minByteCount = min
        new.permit.maxByteCount = max
        return new
    }

    /// Begins an upload of unknown size.
    private func begin(
        _ content: [UInt8], from min: Int64? = nil, to max: Int64?, on node: Node
    ) async throws -> Upload {
        let status = try await node.engine.createSession(
            new(nil, from: min, to: max), owner: .tester)
        return Upload(
            id: status.sessionId, owner: .tester, content: content, chunkSize: 1000, hasSize: false)
    }

    private func declare(_ size: Int64, for upload: Upload, on node: Node) async throws {
        _ = try await node.engine.append(
            AppendPut(offset: 0, declaredSize: size), to: upload.id, owner: upload.owner,
            body: ScriptedBody([1]))
    }

    /// Returns the limit that the operation exceeds; nil if it succeeds.
    private func limit(
        _ operation: () async throws -> Void
    ) async throws -> Int64? {
        do {
            try await operation()
            return nil
        } catch let error as EngineError where error.code == .fileTooLarge {
            return error.maxBytes
        }
    }

    @Test func `a file of a size that is not permitted is not begun`() async throws {
        let node = try await fixture.start()
        let tooLarge = try await limit {
            _ = try await node.engine.createSession(new(2301, to: 2300), owner: .tester)
        }
        #expect(tooLarge == 2300)
        await #expect(throws: EngineError(.forbidden)) {
            try await node.engine.createSession(new(2299, from: 2300, to: 2300), owner: .tester)
        }
        let status = try await node.engine.createSession(
            new(2300, from: 2300, to: 2300), owner: .tester)
        #expect(status.fileSize == 2300)
    }

    @Test func `the limit of the service counts beside a larger one`() async throws {
        let node = try await fixture.start { $0.maxFileSize = 2000 }
        let tooLarge = try await limit {
            _ = try await node.engine.createSession(new(2001, to: 3000), owner: .tester)
        }
        #expect(tooLarge == 2000)
    }

    @Test(arguments: [0, 700, 2000, 2300])
    func `appends of unknown size end at the limit`(first: Int) async throws {
        var node = try await fixture.start()
        let upload = try await begin(sampleBytes(2301), to: 2300, on: node)
        _ = try await node.append(upload.content.prefix(first), to: upload, at: 0)
        // The limit holds after a restart, too.
        node = try await node.restart()
        let rest = upload.content.dropFirst(first)
        let announced = try await limit {
            _ = try await node.append(rest, to: upload, at: first, announcing: rest.count)
        }
        #expect(announced == 2300)
        #expect(try await node.offset(of: upload) == Int64(first))
    }

    @Test func `a body of unknown length is cut off at the limit and keeps its bytes`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await begin(sampleBytes(5000), to: 2300, on: node)
        let streamed = try await limit {
            _ = try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner,
                body: ScriptedBody(upload.content, announcing: nil))
        }
        #expect(streamed == 2300)
        #expect(try await node.offset(of: upload) == 2300)
        #expect(try await node.status(of: upload).state == .open)
    }

    @Test func `no later declaration of the size exceeds the limits`() async throws {
        let node = try await fixture.start()
        let upload = try await begin(sampleBytes(2300), from: 2000, to: 2300, on: node)
        let tooLarge = try await limit { try await declare(2301, for: upload, on: node) }
        #expect(tooLarge == 2300)
        await #expect(throws: EngineError(.forbidden)) {
            try await declare(1999, for: upload, on: node)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
        #expect(try await node.offset(of: upload) == 0)
    }

    @Test func `a file that ends too early is refused and goes on`() async throws {
        let node = try await fixture.start()
        let upload = try await begin(sampleBytes(2300), from: 2300, to: 2300, on: node)
        await #expect(throws: EngineError(.forbidden)) {
            try await node.append(upload.content.prefix(1300), to: upload, at: 0, completes: true)
        }
        #expect(try await node.offset(of: upload) == 1300)
        _ = try await node.append(
            upload.content.dropFirst(1300), to: upload, at: 1300, completes: true)
        let file = try await node.finish(upload)
        #expect(file.byteCount == 2300)
        #expect(file.digest == upload.digest)
    }

    @Test func `no chunk of a file of unknown size lies beyond the limit`() async throws {
        let node = try await fixture.start()
        let upload = try await begin(sampleBytes(4000), to: 2300, on: node)
        try await node.put(1, of: upload)
        let whole = try await limit { try await node.put(2, of: upload) }
        #expect(whole == 2300)
        let part = try await limit { try await node.putPart(2, of: upload, 0..<301) }
        #expect(part == 2300)
        let far = try await limit { try await node.put(3, of: upload) }
        #expect(far == 2300)
        try await node.putPart(2, of: upload, 0..<300)
        #expect(try await node.status(of: upload).receivedBytes == 1300)
    }

    @Test func `a final upload keeps the limit of its session`() async throws {
        let node = try await fixture.start()
        var parts: [Upload] = []
        for _ in 0..<2 {
            let part = try await node.begin(sampleBytes(1500))
            try await node.putAll(of: part)
            parts.append(part)
        }
        var new = new(nil, to: 2999)
        new.sourceIDs = parts.map(\.id)
        let status = try await node.engine.createSession(new, owner: .tester)
        let tooLarge = try await limit {
            _ = try await node.engine.concatenate(status.sessionId, owner: .tester)
        }
        #expect(tooLarge == 2999)
    }
}
