import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// Bytes that were damaged after they were acknowledged do not become a file.
@Suite(.timeLimit(.minutes(1))) struct DamageBeforeFinalizeTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func expectAskedAgain(
        _ chunk: Int, of upload: Upload, on node: Node,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let error = await #expect(throws: EngineError.self, sourceLocation: location) {
            try await node.finish(upload)
        }
        #expect(error?.code == .missingChunks, sourceLocation: location)
        #expect(error?.missing == [chunk...chunk], sourceLocation: location)
        try await node.put(chunk, of: upload)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest, sourceLocation: location)
        #expect(try await node.content(of: file) == upload.content, sourceLocation: location)
    }

    @Test(arguments: [false, true])
    func `a damaged chunk that is read back for the file's hash is asked for again`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        try Damage.flip(fixture.stagingPath(upload), at: 1200)
        if afterRestart { node = try await node.restart() }
        try await node.put(0, of: upload)
        try await expectAskedAgain(1, of: upload, on: node)
    }

    @Test(arguments: [false, true])
    func `a chunk whose first bytes were damaged before the rest came is asked for again`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        try Damage.flip(fixture.stagingPath(upload), at: 1100)
        if afterRestart { node = try await node.restart() }
        try await node.put(1, of: upload, from: 300)
        try await node.put(2, of: upload)
        try await expectAskedAgain(1, of: upload, on: node)
    }

    @Test func `damage to bytes that were appended is asked for again`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content[..<1300], to: upload, at: 0)
        try Damage.flip(fixture.stagingPath(upload), at: 1100)
        _ = try await node.append(upload.content[1300...], to: upload, at: 1300)
        let error = await #expect(throws: EngineError.self) { try await node.finish(upload) }
        #expect(error?.code == .missingChunks)
        #expect(try await node.offset(of: upload) == 1000)
        _ = try await node.append(upload.content[1000...], to: upload, at: 1000)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
    }

    @Test func `all damaged chunks are asked for at once, also those that came after the damage`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(12_500))
        for index in [1, 2, 3, 4, 5, 6, 7, 8, 9] { try await node.put(index, of: upload) }
        for offset: Int64 in [1007, 3007, 4007] {
            try Damage.flip(fixture.stagingPath(upload), at: offset)
        }
        try await node.put(0, of: upload)
        for index in [12, 11] { try await node.put(index, of: upload) }
        try Damage.flip(fixture.stagingPath(upload), at: 11_100)
        try await node.put(10, of: upload)
        let error = await #expect(throws: EngineError.self) { try await node.finish(upload) }
        #expect(error?.code == .missingChunks)
        #expect(error?.missing == [1...1, 3...4, 11...11])
        let missing = (error?.missing ?? []).flatMap { Array($0) }
        for index in missing { try await node.put(index, of: upload) }
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `bytes that only the page cache has wrong cost no chunk`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        let path = fixture.stagingPath(upload)
        try Damage.flip(path, at: 1200)
        let isRepaired = Shared(false)
        fixture.disk.whenDroppingCached {
            isRepaired.update { isDone in
                if !isDone { #expect(throws: Never.self) { try Damage.flip(path, at: 1200) } }
                isDone = true
            }
        }
        try await node.put(0, of: upload)
        let file = try await node.finish(upload)
        #expect(isRepaired.value)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `chunks after the end of a truncated staging file are asked for again`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        for index in [1, 2, 3] { try await node.put(index, of: upload) }
        try Damage.cut(fixture.stagingPath(upload), to: 1100)
        try await node.put(0, of: upload)
        let error = await #expect(throws: EngineError.self) { try await node.finish(upload) }
        #expect(error?.missing == [1...3])
        for index in [1, 2, 3] { try await node.put(index, of: upload) }
        let file = try await node.finish(upload)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test(arguments: [false, true])
    func `damage before the hash checkpoint is found with damage after it`(
        isTruncated: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        for index in [0, 2, 3] { try await node.put(index, of: upload) }
        let path = fixture.stagingPath(upload)
        if isTruncated {
            try Damage.cut(path, to: 500)
        } else {
            for offset: Int64 in [300, 2100] { try Damage.flip(path, at: offset) }
        }
        try await node.put(1, of: upload)
        var rounds = 0
        var file: FileRecord?
        while file == nil, rounds < 4 {
            rounds += 1
            do {
                file = try await node.finish(upload)
            } catch let error as EngineError where error.code == .missingChunks {
                for index in (error.missing ?? []).flatMap({ Array($0) }) {
                    try await node.put(index, of: upload)
                }
            }
        }
        let made = try #require(file)
        #expect(made.digest == upload.digest)
        #expect(try await node.content(of: made) == upload.content)
    }

    @Test func `two finalizes that find the same damage invalidate the chunk once`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        try Damage.flip(fixture.stagingPath(upload), at: 1200)
        try await node.put(0, of: upload)
        let (calls, gate) = (Shared(0), Gate())
        node.metadata.before { call in
            guard case .invalidateDamagedChunks = call else { return }
            calls.update { $0 += 1 }
            await gate.wait()
        }
        let finalizes = (0..<2).map { _ in
            Task { () -> ErrorCode? in
                do {
                    _ = try await node.engine.finalize(upload.id, owner: upload.owner)
                    return nil
                } catch {
                    return (error as? EngineError)?.code
                }
            }
        }
        while calls.value == 0 { await Task.yield() }
        // Meanwhile the other finalize finds the damage, too. No event shows that it has.
        try await Task.sleep(for: .milliseconds(100))
        gate.open()
        var codes: [ErrorCode?] = []
        for finalize in finalizes { codes.append(await finalize.value) }
        #expect(codes.contains(.missingChunks))
        #expect(codes.allSatisfy { $0 == .missingChunks || $0 == .unavailable })
        #expect(calls.value == 1)
        try await node.put(1, of: upload)
        let file = try await node.finish(upload)
        #expect(try await node.content(of: file) == upload.content)
        #expect(calls.value == 1)
    }
}
