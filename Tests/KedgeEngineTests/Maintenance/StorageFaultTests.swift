import Glibc
import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R2, R114: a disk that fails loses nothing that was acknowledged, and the session goes on.
@Suite(.timeLimit(.minutes(1))) struct StorageFaultTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// A session of 2500 bytes with its first chunk and 300 bytes of the second.
    private func started(on node: Node) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        return upload
    }

    /// Sends the missing bytes, from the server's offsets.
    private func complete(_ upload: Upload, on node: Node) async throws {
        let status = try await node.status(of: upload)
        for index in 0..<upload.chunkCount where !status.receivedChunks.contains(index) {
            let partial = status.partialChunks.first { $0.index == index }
            try await node.put(index, of: upload, from: Int(partial?.receivedBytes ?? 0))
        }
    }

    private func expectWhole(
        _ upload: Upload, on node: Node, at location: SourceLocation = #_sourceLocation
    ) async throws {
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest, sourceLocation: location)
        let content = try await node.content(of: file)
        #expect(content == upload.content, sourceLocation: location)
    }

    /// The rest of a chunk of 700 bytes is three writes.
    @Test(arguments: [0, 1, 2], [false, true])
    func `a disk that fills up keeps what was written before`(
        write: Int, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.disk.fillUp(atWrite: write)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.put(1, of: upload, from: 300)
        }
        fixture.disk.heal()
        if afterRestart { node = try await node.restart() }
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        let received = Int64(300 + write * 256)
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: received)])
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }

    /// 1200 bytes in two chunks are five writes.
    @Test(arguments: [0, 1, 4])
    func `an append on a disk that fills up keeps what was written before`(
        write: Int
    ) async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.disk.fillUp(atWrite: write)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.append(upload.content.dropFirst(1300), to: upload, at: 1300)
        }
        fixture.disk.heal()
        let offset = Int(try await node.offset(of: upload))
        #expect(offset >= 1300)
        _ = try await node.append(upload.content.dropFirst(offset), to: upload, at: offset)
        try await expectWhole(upload, on: node)
    }

    @Test func `a chunk that cannot fit is refused before its body is read`() async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.disk.pretendAvailable(699)
        let body = ScriptedBody(upload.chunk(1).dropFirst(300), announcing: 700)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.put(upload.put(1, from: 300), of: upload, body)
        }
        #expect(body.watch.readerCount == 0)
        fixture.disk.pretendAvailable(700)
        try await node.put(1, of: upload, from: 300)
    }

    /// An append reserves the space of one chunk, as a native chunk does, and not that of the rest
    /// of its file.
    @Test func `an append reserves the space of its chunk`() async throws {
        let node = try await fixture.start()
        let first = try await node.begin(sampleBytes(2500, seed: 1))
        let second = try await node.begin(sampleBytes(2500, seed: 2))
        fixture.disk.pretendAvailable(1999)
        let body = ScriptedBody(first.content.prefix(100), ending: .hangs)
        let slow = Task {
            try await node.engine.append(
                AppendPut(offset: 0), to: first.id, owner: first.owner, body: body)
        }
        await body.watch.isHanging.wait()
        await #expect(throws: EngineError(.storageFull)) {
            try await node.append(second.content, to: second, at: 0)
        }
        await #expect(throws: EngineError(.storageFull)) { try await node.put(0, of: second) }
        slow.cancel()
        _ = await slow.result
        #expect(try await node.append(second.content, to: second, at: 0) == 2500)
    }

    @Test(arguments: [EIO, ENOSPC, EDQUOT, EROFS])
    func `a failed write is reported with its cause, and sending again works`(
        number: Int32
    ) async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.disk.fail(.write, with: number)
        let error = await #expect(throws: EngineError.self) {
            try await node.put(1, of: upload, from: 300)
        }
        switch number {
        case EIO: #expect(error?.code == .internalError)
        case EROFS: #expect(error?.code == .unavailable)
        default: #expect(error?.code == .storageFull)
        }
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }

    @Test(arguments: [false, true])
    func `a failed sync acknowledges nothing, and sending again works`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await started(on: node)
        let before = try await node.status(of: upload)
        fixture.disk.fail(.sync)
        await #expect(throws: EngineError(.internalError)) {
            try await node.put(1, of: upload, from: 300)
        }
        if afterRestart { node = try await node.restart() }
        let after = try await node.status(of: upload)
        #expect(after.receivedChunks == [0])
        #expect(after.partialChunks == before.partialChunks)
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }

    @Test func `a failed sync of an interrupted body keeps the earlier bytes`() async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.disk.fail(.sync)
        await node.breakOff(1, of: upload, from: 300, after: 200)
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [300])
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }

    /// Bytes written through the same descriptor since the last good sync are in doubt.
    @Test func `a failed sync fails every chunk that shares the file`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let body = ScriptedBody(upload.chunk(1).prefix(500), announcing: 1000, ending: .hangs)
        let other = Task { try await node.put(upload.put(1), of: upload, body) }
        await body.watch.isHanging.wait()
        fixture.disk.fail(.sync)
        await #expect(throws: EngineError(.internalError)) { try await node.put(0, of: upload) }
        other.cancel()
        await #expect(throws: EngineError.self) { try await other.value }
        #expect(try await node.status(of: upload).receivedBytes == 0)
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }

    /// Fails each call of a kind in turn, until the upload runs without a failure.
    @Test(arguments: [TestDisk.Call.write, .sync, .read])
    func `no failing call of the disk loses acknowledged chunks`(call: TestDisk.Call) async throws {
        let node = try await fixture.start()
        for position in 0..<40 {
            let upload = try await node.begin(sampleBytes(1700, seed: UInt64(position)))
            let hasFailed = Shared(false)
            fixture.disk.apply { made, count in
                guard made == call, count == position else { return nil }
                hasFailed.update { $0 = true }
                return EIO
            }
            var acknowledged: Set<Int> = []
            for index in [1, 0] {
                do {
                    try await node.put(index, of: upload)
                    acknowledged.insert(index)
                } catch is EngineError {
                    // The chunk is sent again below.
                }
            }
            let received = Set(try await node.status(of: upload).receivedChunks)
            #expect(received.isSuperset(of: acknowledged))
            do {
                try await complete(upload, on: node)
                try await expectWhole(upload, on: node)
            } catch is EngineError {
                try await complete(upload, on: node)
                try await expectWhole(upload, on: node)
            }
            if !hasFailed.value { return }
        }
        Issue.record("it never ran without a failure")
    }

    @Test(arguments: [HookedMetadata.Call.commit, .savePartial])
    func `a failed transaction acknowledges nothing, and sending again works`(
        failing: HookedMetadata.Call
    ) async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        node.metadata.before { call in
            if call == failing { throw MetadataError.full("planned") }
        }
        if failing == .commit {
            await #expect(throws: EngineError(.storageFull)) {
                try await node.put(1, of: upload, from: 300)
            }
        } else {
            await node.breakOff(1, of: upload, from: 300, after: 200)
        }
        node.metadata.before(nil)
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: 300)])
        try await complete(upload, on: node)
        try await expectWhole(upload, on: node)
    }
}
