import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeTesting
import Testing

/// R18: a failed finalize completes without its client and without a restart.
@Suite(.timeLimit(.minutes(1))) struct LeftBehindTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func complete(on node: Node, seed: UInt64 = 1) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(2500, seed: seed))
        try await node.putAll(of: upload)
        return upload
    }

    /// Finalizes while the last row cannot be written.
    private func leaveBehind(_ upload: Upload, on node: Node) async throws {
        node.metadata.before { call in
            if call == .completeFinalize { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) { try await node.finish(upload) }
        node.metadata.before(nil)
        #expect(try await node.status(of: upload).state == .finalizing)
    }

    @Test(arguments: [Duration.zero, .seconds(100 * 24 * 3600)])
    func `the next sweep completes a failed finalize, however late`(delay: Duration) async throws {
        let node = try await fixture.start()
        let upload = try await complete(on: node)
        try await leaveBehind(upload, on: node)
        fixture.clock.advance(by: delay)
        try await node.engine.sweep()
        #expect(try await node.status(of: upload).state == .completed)
        try await node.engine.sweep()
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a finalize that fails again keeps its bytes and delays no other`()
        async throws
    {
        let node = try await fixture.start()
        let stuck = try await complete(on: node, seed: 1)
        let other = try await complete(on: node, seed: 2)
        // A file lies where the blob's directory would be.
        let parent = "\(fixture.dataPath)/blobs/\(stuck.digest.hex.prefix(2))"
        let files = POSIXFileSystem()
        try files.open(parent, .createNew).close()
        await #expect(throws: EngineError.self) { try await node.finish(stuck) }
        try await leaveBehind(other, on: node)
        for _ in 0..<2 { try await node.engine.sweep() }
        #expect(try await node.status(of: other).state == .completed)
        #expect(try await node.status(of: stuck).state == .finalizing)
        _ = try files.remove(parent)
        try await node.engine.sweep()
        #expect(try await node.status(of: stuck).state == .completed)
        #expect(try await node.content(of: try await node.finish(stuck)) == stuck.content)
    }

    @Test func `a finalizing session whose bytes are gone is reopened and can be sent again`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await complete(on: node)
        _ = try await node.metadata.beginFinalize(
            of: upload.id, digest: upload.digest, fileID: .random())
        try await node.bytes.removeStaging(StagingKey(upload.id))
        try await node.engine.sweep()
        let status = try await node.status(of: upload)
        #expect(status.state == .open)
        #expect(status.receivedBytes == 0)
        try await node.putAll(of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a sweep leaves a running finalize alone`() async throws {
        let node = try await fixture.start()
        let upload = try await complete(on: node)
        let (hasArrived, mayGoOn, callCount) = (Gate(), Gate(), Shared(0))
        node.metadata.before { call in
            guard call == .completeFinalize else { return }
            _ = callCount.increment()
            hasArrived.open()
            await mayGoOn.wait()
        }
        let finalize = Task { try await node.finish(upload) }
        await hasArrived.wait()
        try await node.engine.sweep()
        mayGoOn.open()
        #expect(try await node.content(of: try await finalize.value) == upload.content)
        #expect(callCount.value == 1)
    }
}
