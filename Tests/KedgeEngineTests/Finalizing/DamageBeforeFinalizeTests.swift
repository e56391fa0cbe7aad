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
}
