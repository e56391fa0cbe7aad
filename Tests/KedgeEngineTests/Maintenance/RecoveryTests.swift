import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Recovery at a start, after a stop of any kind.
@Suite(.timeLimit(.minutes(1))) struct RecoveryTests {
    private let fixture: EngineEnvironment
    private let files = POSIXFileSystem()

    init() throws { fixture = try EngineEnvironment() }

    private func stagingPath(_ key: StagingKey) -> String {
        "\(fixture.dataPath)/staging/\(key.text.prefix(2))/\(key)"
    }

    private func complete(on node: Node) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        return upload
    }

    /// The process is killed between the two transactions of a finalize, before or after the
    /// rename.
    @Test(arguments: [false, true])
    func `an interrupted finalize is finished at the start`(isPromoted: Bool) async throws {
        var node = try await fixture.start()
        let upload = try await complete(on: node)
        let id = FileID.random()
        _ = try await node.metadata.beginFinalize(of: upload.id, digest: upload.digest, fileID: id)
        if isPromoted {
            try await node.bytes.promote(
                StagingKey(upload.id), to: upload.digest, byteCount: 2500)
        }
        node = try await node.restart()
        let status = try await node.status(of: upload)
        #expect(status.state == .completed)
        #expect(status.remoteFileId == id)
        let file = try await node.finish(upload)
        #expect(file.id == id)
        #expect(try await node.content(of: file) == upload.content)
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test func `an interrupted finalize of a file that was stored before is finished too`()
        async throws
    {
        var node = try await fixture.start()
        let other = try await node.file(sampleBytes(2500))
        let upload = try await complete(on: node)
        let id = FileID.random()
        _ = try await node.metadata.beginFinalize(of: upload.id, digest: upload.digest, fileID: id)
        try await node.engine.deleteFile(other.id, owner: .tester)
        node = try await node.restart()
        try await node.engine.sweep()
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an interrupted finalize whose bytes are gone opens the session again`() async throws
    {
        var node = try await fixture.start()
        let upload = try await complete(on: node)
        _ = try await node.metadata.beginFinalize(
            of: upload.id, digest: upload.digest, fileID: .random())
        try await node.bytes.removeStaging(StagingKey(upload.id))
        node = try await node.restart()
        let status = try await node.status(of: upload)
        #expect(status.state == .open)
        #expect(status.receivedChunks == [])
        try await node.putAll(of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an interrupted finalize that lacks a chunk opens the session again`()
        async throws
    {
        var node = try await fixture.start()
        let upload = try await complete(on: node)
        _ = try await node.metadata.beginFinalize(
            of: upload.id, digest: upload.digest, fileID: .random())
        try await node.metadata.invalidateChunks([1], of: upload.id)
        node = try await node.restart()
        #expect(try await node.status(of: upload).state == .open)
        try await node.putAll(of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// R2: damage is found, and what is not damaged stays.
    @Test(
        arguments: [
            (3500, [0, 1, 3]), (3499, [0, 1]), (2000, [0, 1]), (1999, [0]), (1000, [0]), (1, []),
            (0, []),
        ] as [(Int64, [Int])])
    func `chunks beyond the end of a shortened staging file are invalidated`(
        byteCount: Int64, left: [Int]
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        for index in [0, 1, 3] { try await node.put(index, of: upload) }
        try await node.kill()
        let file = try files.open(stagingPath(StagingKey(upload.id)), .readWrite)
        try file.truncate(to: byteCount)
        try file.close()
        node = try await fixture.start()
        #expect(try await node.status(of: upload).receivedChunks == left)
        for index in 0..<4 { try await node.put(index, of: upload) }
        let done = try await node.finish(upload)
        #expect(done.digest == upload.digest)
        #expect(try await node.content(of: done) == upload.content)
    }

    @Test func `a partial beyond the end of a shortened staging file is invalidated`() async throws
    {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        try await node.kill()
        let file = try files.open(stagingPath(StagingKey(upload.id)), .readWrite)
        try file.truncate(to: 1299)
        try file.close()
        node = try await fixture.start()
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        #expect(status.partialChunks == [])
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a session whose staging file is gone starts over`() async throws {
        var node = try await fixture.start()
        let upload = try await complete(on: node)
        try await node.kill()
        #expect(try files.remove(stagingPath(StagingKey(upload.id))))
        node = try await fixture.start()
        #expect(try await node.status(of: upload).receivedBytes == 0)
        try await node.putAll(of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `bytes written but never committed are not counted`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        let area = try await node.bytes.openStaging(StagingKey(upload.id))
        let buffer = BufferPool(bufferCapacity: 4000, keptCount: 0).take()
        _ = sampleBytes(4000, seed: 9).withUnsafeBytes { buffer.append($0) }
        try await area.write(buffer, at: 1000)
        try await area.sync()
        await area.close()
        node = try await node.restart()
        #expect(try await node.status(of: upload).receivedChunks == [0])
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        // The blob ends where the file ends, although the staging file was longer.
        let file = try await node.finish(upload)
        #expect(try await node.bytes.openBlob(file.blob).byteCount == 2500)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a staging file that no row knows is quarantined, not deleted`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        try await node.kill()
        let key = StagingKey(.random())
        let directory = "\(fixture.dataPath)/staging/\(key.text.prefix(2))"
        try files.makeDirectory(directory)
        let file = try files.open("\(directory)/\(key)", .createNew)
        try [1, 2, 3].withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
        node = try await fixture.start()
        #expect(try await node.bytes.stagingKeys() == [StagingKey(upload.id)])
        let kept = try files.status(of: "\(fixture.dataPath)/quarantine/\(key).1")
        #expect(kept?.byteCount == 3 * Int64(MemoryLayout<Int>.size))
        try await node.engine.sweep()
        #expect(try files.status(of: "\(fixture.dataPath)/quarantine/\(key).1") == kept)
    }

    @Test func `a session that cannot be finished does not keep the others from starting`()
        async throws
    {
        var node = try await fixture.start()
        let first = try await complete(on: node)
        _ = try await node.metadata.beginFinalize(
            of: first.id, digest: first.digest, fileID: .random())
        let second = try await node.begin(sampleBytes(1500))
        try await node.kill()
        // A file lies where the blob's directory would be.
        let parent = "\(fixture.dataPath)/blobs/\(first.digest.hex.prefix(2))"
        try files.open(parent, .createNew).close()
        node = try await fixture.start()
        try await node.putAll(of: second)
        #expect(try await node.content(of: try await node.finish(second)) == second.content)
        #expect(try await node.status(of: first).state == .finalizing)
        _ = try files.remove(parent)
        #expect(try await node.content(of: try await node.finish(first)) == first.content)
    }
}
