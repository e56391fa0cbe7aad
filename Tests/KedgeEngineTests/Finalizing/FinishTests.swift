import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Finalizing by a request that waits for the file.
@Suite(.timeLimit(.minutes(1))) struct FinishTests {
    @Test func `a finish returns the file, and a repeated one returns the same`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let file = try await node.engine.finish(
            upload.id, owner: upload.owner, expecting: upload.digest)
        #expect(try await node.content(of: file) == upload.content)
        #expect(try await node.engine.finish(upload.id, owner: upload.owner) == file)
    }

    @Test func `a finish fails with the errors of finalize`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await #expect(throws: EngineError(.missingChunks)) {
            try await node.engine.finish(upload.id, owner: upload.owner)
        }
        for index in 1..<3 { try await node.put(index, of: upload) }
        await #expect(throws: EngineError(.integrityMismatch)) {
            try await node.engine.finish(
                upload.id, owner: upload.owner, expecting: SHA256Hasher.digest(of: [1]))
        }
        await #expect(throws: EngineError(.sessionNotFound)) {
            try await node.engine.finish(upload.id, owner: .stranger)
        }
    }

    /// Makes an upload whose file cannot be verified before the gate opens: the service hashes
    /// chunks out of order by reading them back, and the disk is slow.
    private func slowUpload(at fixture: EngineEnvironment, on node: Node) async throws -> (
        Upload, ThreadGate
    ) {
        let upload = try await node.begin(sampleBytes(2500))
        let disk = ThreadGate()
        fixture.disk.apply { call, _ in
            if call == .read { disk.wait() }
            return nil
        }
        for index in [1, 2, 0] { try await node.put(index, of: upload) }
        await disk.hasArrived.wait()
        return (upload, disk)
    }

    /// Lets time pass for as long as the body runs.
    private func passingTime<Result: Sendable>(
        at fixture: EngineEnvironment, _ body: () async throws -> Result
    ) async throws -> Result {
        let time = Task {
            while !Task.isCancelled {
                fixture.timer.advance(by: .milliseconds(200))
                await Task.yield()
            }
        }
        defer { time.cancel() }
        return try await body()
    }

    @Test func `a finish waits while the file is being verified`() async throws {
        let fixture = try EngineEnvironment {
            $0.finalizeTimeout = .zero
            $0.finishTimeout = .seconds(1_000_000)
        }
        let node = try await fixture.start()
        let (upload, disk) = try await slowUpload(at: fixture, on: node)
        let finish = Task { try await node.engine.finish(upload.id, owner: upload.owner) }
        await fixture.timer.waitForSleepers(1)
        disk.open()
        let file = try await passingTime(at: fixture) { try await finish.value }
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a finish that times out loses nothing`() async throws {
        let fixture = try EngineEnvironment {
            $0.finalizeTimeout = .zero
            $0.finishTimeout = .seconds(5)
        }
        var node = try await fixture.start()
        let (upload, disk) = try await slowUpload(at: fixture, on: node)
        await #expect(throws: EngineError(.unavailable)) {
            try await passingTime(at: fixture) {
                try await node.engine.finish(upload.id, owner: upload.owner)
            }
        }
        disk.open()
        node = try await node.restart()
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }
}
