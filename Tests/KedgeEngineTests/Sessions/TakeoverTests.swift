import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// A newer writer takes over from one that hangs: the newest wins, and no byte that arrived is
/// lost.
@Suite(.timeLimit(.minutes(1))) struct TakeoverTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// Starts a chunk upload that hangs after some bytes, and returns once it does.
    private func hang(
        _ index: Int, of upload: Upload, after count: Int, on node: Node
    ) async -> Task<ChunkPutOutcome, any Error> {
        let body = ScriptedBody(
            upload.chunk(index).prefix(count), announcing: upload.chunk(index).count, ending: .hangs
        )
        let task = Task { try await node.put(upload.put(index), of: upload, body) }
        await body.watch.isHanging.wait()
        return task
    }

    @Test(arguments: [0, 1, 256, 700])
    func `the newer upload takes over, and the older one's bytes count`(
        count: Int
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let old = await hang(0, of: upload, after: count, on: node)
        let outcome = try await node.put(0, of: upload, from: count)
        #expect(outcome.isCreated)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// Compared with uploads that have no older writer, because the machine may be busy with other
    /// tests.
    @Test func `taking over costs less than a second`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000), chunkSize: 100)
        let clock = ContinuousClock()
        var slowestAlone = Duration.zero
        var fastestTakeover = Duration.seconds(60)
        for index in 0..<5 {
            let alone = try await clock.measure { _ = try await node.put(index + 5, of: upload) }
            slowestAlone = max(slowestAlone, alone)
            let old = await hang(index, of: upload, after: 50, on: node)
            let takeover = try await clock.measure {
                _ = try await node.put(index, of: upload, from: 50)
            }
            fastestTakeover = min(fastestTakeover, takeover)
            await #expect(throws: EngineError.self) { try await old.value }
        }
        #expect(fastestTakeover < slowestAlone + .seconds(1))
    }

    @Test func `a hung writer gets a grace time to end by itself, and no longer`() async throws {
        let patient = try EngineEnvironment { $0.takeoverGrace = .milliseconds(200) }
        let node = try await patient.start()
        let upload = try await node.begin(sampleBytes(1000))
        let old = await hang(0, of: upload, after: 300, on: node)
        let new = Task { try await node.put(0, of: upload, from: 300) }
        // The newer one waits until the time is over, which only the test lets pass.
        await patient.timer.waitForSleepers(2)
        patient.timer.advance(by: .milliseconds(199))
        #expect(patient.timer.sleeperCount == 2)
        patient.timer.advance(by: .milliseconds(1))
        #expect(try await new.value.isCreated)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
    }

    // An append claims the chunk that it writes as part of itself.
    @Test(arguments: [false, true])
    func `a writer whose bytes still arrive gets a longer grace time, and no longer`(
        isAppend: Bool
    ) async throws {
        let patient = try EngineEnvironment { $0.takeoverGrace = .milliseconds(200) }
        let node = try await patient.start()
        let session = try await node.engine.registry.withSession(
            try await node.begin(sampleBytes(1000)).id, owner: .tester
        ) { $0 }
        let (old, new) = (ActiveWriter(), ActiveWriter())
        var slot = old
        if isAppend {
            slot = try await session.claimChunk(0, stopping: old)
        } else {
            try await session.claim(.chunk(0), for: old)
        }
        let claim = Task { try await session.claim(.chunk(0), for: new) }
        for _ in 0..<4 {
            #expect(old.interruption == nil)
            await patient.timer.waitForSleepers(1)
            old.countReceived(1)
            patient.timer.advance(by: .milliseconds(200))
        }
        while old.interruption == nil { await Task.yield() }
        await session.release(.chunk(0), slot)
        try await claim.value
        await session.release(.chunk(0), new)
    }

    @Test func `a newer upload that breaks off at once leaves the older one's bytes`() async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let old = await hang(0, of: upload, after: 700, on: node)
        await node.breakOff(0, of: upload, after: 0)
        _ = await old.result
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [700])
    }

    @Test func `a newer upload of other bytes starts the chunk over`() async throws {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000, seed: 1))
        let task = await hang(0, of: old, after: 700, on: node)
        let new = Upload(
            id: old.id, owner: old.owner, content: sampleBytes(1000, seed: 2), chunkSize: 1000)
        #expect(try await node.put(0, of: new).isCreated)
        await #expect(throws: EngineError(.writerReplaced)) { try await task.value }
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `a hung writer is not disturbed by uploads of other chunks`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let hung = await hang(1, of: upload, after: 300, on: node)
        try await node.put(0, of: upload)
        try await node.put(2, of: upload)
        #expect(node.engine.activeWriteCount == 1)
        hung.cancel()
        await #expect(throws: EngineError.self) { try await hung.value }
        #expect(node.engine.activeWriteCount == 0)
        let partials = try await node.status(of: upload).partialChunks
        #expect(partials == [PartialChunk(index: 1, receivedBytes: 300)])
    }

    /// R123 with concurrent writers.
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `one of many concurrent uploads of a chunk wins, when half have other bytes`(
        seed: UInt64
    ) async throws {
        var generator = SplitMix64(seed: seed)
        let node = try await fixture.start()
        let first = try await node.begin(sampleBytes(1000, seed: 1))
        let second = Upload(
            id: first.id, owner: first.owner, content: sampleBytes(1000, seed: 2), chunkSize: 1000)
        let all = (Array(repeating: first, count: 16) + Array(repeating: second, count: 16))
            .shuffled(using: &generator)
        let results = await withTaskGroup(of: (SHA256Digest, Result<Bool, any Error>).self) {
            group in
            for upload in all {
                group.addTask {
                    do {
                        let outcome = try await node.put(0, of: upload)
                        return (upload.digest, .success(outcome.isCreated))
                    } catch {
                        return (upload.digest, .failure(error))
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let file = try await node.finish(first)
        let created = results.filter {
            if case .success(true) = $0.1 { true } else { false }
        }.map(\.0)
        #expect(created == [file.digest])
        for (digest, result) in results {
            switch result {
            case .success: #expect(digest == file.digest)
            case .failure(let error as EngineError) where error.code == .chunkConflict:
                #expect(digest != file.digest)
            case .failure(let error as EngineError):
                // The writer was interrupted before another one had won. The error says nothing
                // about the bytes.
                #expect([.writerReplaced, .unavailable].contains(error.code))
            case .failure(let error): Issue.record(error)
            }
        }
        // The bytes are those of the digest, not a mixture.
        #expect(SHA256Hasher.digest(of: try await node.content(of: file)) == file.digest)
    }

    @Test func `an append takes over from a hung append and goes on after its bytes`() async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let body = ScriptedBody(upload.content.prefix(1300), announcing: 2500, ending: .hangs)
        let old = Task {
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        await body.watch.isHanging.wait()
        // The newer append stops the older one, and is refused with the offset at which to go on.
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content, to: upload, at: 0)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 1300)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
        let end = try await node.append(upload.content.dropFirst(1300), to: upload, at: 1300)
        #expect(end == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// The append was admitted at an offset that the native upload's bytes then moved.
    @Test func `an append that stops a native upload never mixes its bytes into the wrong place`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let old = await hang(0, of: upload, after: 300, on: node)
        do {
            _ = try await node.append(upload.content, to: upload, at: 0)
        } catch let error as EngineError where error.code == .offsetMismatch {
            #expect(error.expectedOffset == 300)
            _ = try await node.append(upload.content.dropFirst(300), to: upload, at: 300)
        }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
    }

    @Test func `an append that stops a native upload inside its chunk gets the offset to go on`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        let body = ScriptedBody(
            upload.content[300..<700], announcing: 700, ending: .hangs)
        let old = Task { try await node.put(upload.put(0, from: 300), of: upload, body) }
        await body.watch.isHanging.wait()
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content.dropFirst(300), to: upload, at: 300)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 700)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
        _ = try await node.append(upload.content.dropFirst(700), to: upload, at: 700)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// The service reads bytes that it has already and does not write them. A takeover works there,
    /// too.
    @Test(arguments: [false, true])
    func `a writer that hangs within bytes that are there already is replaced like any other`(
        appending: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        await node.breakOff(0, of: upload, after: 700)
        let second = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: second)
        let old: Task<Void, any Error>
        if appending {
            let body = ScriptedBody(second.content.prefix(1500), announcing: 2500, ending: .hangs)
            old = Task {
                _ = try await node.engine.append(
                    AppendPut(offset: 0), to: second.id, owner: second.owner, body: body)
            }
            await body.watch.isHanging.wait()
            await #expect(throws: EngineError(.offsetMismatch)) {
                try await node.append([], to: second, at: 1)
            }
        } else {
            let task = await hang(0, of: upload, after: 300, on: node)
            old = Task { _ = try await task.value }
            #expect(try await node.put(0, of: upload, from: 700).isCreated)
        }
        let error = await #expect(throws: EngineError.self) { try await old.value }
        #expect(error?.code == .writerReplaced)
    }

    /// The chunk is committed while the append waits for its slot; the append must see that.
    @Test func `an append never writes to a chunk that was committed while it waited`() async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000, seed: 1))
        let isCommitting = Gate()
        let commitCount = Shared(0)
        node.metadata.before { call in
            guard call == .commit, commitCount.increment() == 1 else { return }
            isCommitting.open()
            // The append claims the slot and interrupts the writer. A commit does not stop for
            // that.
            await untilCancelled()
        }
        let native = Task { try await node.put(0, of: upload) }
        await isCommitting.wait()
        await #expect(throws: EngineError(.chunkConflict)) {
            try await node.append(sampleBytes(1000, seed: 2), to: upload, at: 0)
        }
        #expect(try await native.value.isCreated)
        let file = try await node.finish(upload)
        let bytes = try await node.content(of: file)
        #expect(SHA256Hasher.digest(of: bytes) == file.digest)
    }
}
