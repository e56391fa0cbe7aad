import Foundation
import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// An empty session becomes a file with bytes that its owner has stored before.
@Suite(.timeLimit(.minutes(1))) struct StoredFileReuseTests {
    private let fixture: EngineEnvironment
    private let content = sampleBytes(2500)
    private var digest: SHA256Digest { SHA256Hasher.digest(of: content) }
    private var blobPath: String { fixture.blobPath(digest) }

    init() throws { fixture = try EngineEnvironment() }

    private func offers(_ upload: Upload, _ node: Node) async throws -> [FileID] {
        try await node.engine.storedFiles(for: upload.id, owner: upload.owner)
            .map(\.remoteFileId)
    }

    /// Expects that the session wants its bytes, and that it becomes a file with them.
    private func expectBytesAreNeeded(
        _ upload: Upload, _ node: Node, offered: [FileID] = []
    ) async throws {
        #expect(try await offers(upload, node) == offered)
        let error = await #expect(throws: EngineError.self) {
            try await node.finish(upload, expecting: upload.digest)
        }
        #expect(error?.code == .missingChunks)
        try await node.putAll(of: upload)
        let file = try await node.finish(upload, expecting: upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `an empty session becomes a file with stored bytes, once`() async throws {
        let node = try await fixture.start()
        let stored = try await node.file(content)
        let upload = try await node.begin(content)
        #expect(try await offers(upload, node) == [stored.id])
        let file = try await node.finish(upload, expecting: digest)
        #expect(file.id != stored.id && file.digest == digest && file.sessionID == upload.id)
        #expect(try await node.content(of: file) == content)
        #expect(try await node.finish(upload, expecting: digest) == file)
        let status = try await node.status(of: upload)
        #expect(status.state == .completed && status.remoteFileId == file.id)
        #expect(status.receivedBytes == Int64(content.count))
        #expect(try await offers(upload, node) == [])
        // Each of the files keeps the blob, also over a restart and a sweep.
        try await node.engine.deleteFile(stored.id, owner: .tester)
        let next = try await node.restart()
        try await next.engine.sweep()
        #expect(try await next.content(of: file) == content)
        let chunks = try await next.engine.chunkDigests(of: file)
        #expect(chunks == (0..<3).map { SHA256Hasher.digest(of: upload.chunk($0)) })
        try await next.engine.deleteFile(file.id, owner: .tester)
        try await next.engine.sweep()
        #expect(!FileManager.default.fileExists(atPath: blobPath))
    }

    @Test func `a session does not become a file with the bytes of another owner`() async throws {
        let node = try await fixture.start()
        _ = try await node.file(content, owner: .stranger)
        try await expectBytesAreNeeded(try await node.begin(content), node)
    }

    @Test func `a session does not become a file without an expected digest`() async throws {
        let node = try await fixture.start()
        _ = try await node.file(content)
        let upload = try await node.begin(content, declaring: digest)
        let error = await #expect(throws: EngineError.self) { try await node.finish(upload) }
        #expect(error?.code == .missingChunks)
    }

    @Test func `other bytes of the same size are offered but not used`() async throws {
        let node = try await fixture.start()
        let other = try await node.file(sampleBytes(2500, seed: 2))
        try await expectBytesAreNeeded(
            try await node.begin(content), node, offered: [other.id])
    }

    @Test func `a damaged blob is not used, and the upload heals it`() async throws {
        let node = try await fixture.start()
        let stored = try await node.file(content)
        let handle = try #require(FileHandle(forWritingAtPath: blobPath))
        try handle.seek(toOffset: 1200)
        try handle.write(contentsOf: Data("rotten".utf8))
        try handle.close()
        try await node.scrubAll()
        try await expectBytesAreNeeded(try await node.begin(content), node)
        #expect(try await node.content(of: stored) == content)
    }

    @Test(arguments: [nil, 2499]) func `a blob that is gone or cut is not used`(
        size: Int?
    ) async throws {
        let node = try await fixture.start()
        let stored = try await node.file(content)
        if let size { truncate(blobPath, off_t(size)) } else { unlink(blobPath) }
        try await expectBytesAreNeeded(
            try await node.begin(content), node, offered: [stored.id])
        #expect(try await node.content(of: stored) == content)
    }

    @Test func `bytes that were verified too long ago are not used`() async throws {
        let node = try await fixture.start()
        let stored = try await node.file(content)
        let period = EngineConfiguration().scrubPeriod
        fixture.clock.advance(by: period)
        let early = try await node.begin(content)
        #expect(try await offers(early, node) == [stored.id])
        fixture.clock.advance(by: .milliseconds(1))
        try await expectBytesAreNeeded(try await node.begin(content), node)
        fixture.clock.advance(by: period + .seconds(1))
        #expect(try await offers(try await node.begin(content), node) == [])
        try await node.scrubAll()
        #expect(try await offers(try await node.begin(content), node).isEmpty == false)
    }

    @Test func `a file deleted after the offer is not used`() async throws {
        let node = try await fixture.start()
        let stored = try await node.file(content)
        let upload = try await node.begin(content)
        #expect(try await offers(upload, node) == [stored.id])
        try await node.engine.deleteFile(stored.id, owner: .tester)
        try await expectBytesAreNeeded(upload, node)
    }

    @Test func `a session with bytes is filled, not replaced`() async throws {
        let node = try await fixture.start()
        _ = try await node.file(content)
        let upload = try await node.begin(content)
        try await node.put(1, of: upload)
        try await expectBytesAreNeeded(upload, node)
    }
}
