import Glibc
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Different bodies for one chunk: acknowledged bytes of one stay until another is complete.
@Suite(.timeLimit(.minutes(1))) struct RivalPartialTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment { $0.checkpointByteCount = 1 << 20 } }

    /// The front end whose bytes came first.
    enum First: CaseIterable, Sendable { case append, native }

    /// Makes a session of 2500 bytes with the first 600 of a file, and returns it also with the
    /// content of another file.
    private func begun(
        by first: First, on node: Node
    ) async throws -> (old: Upload, new: Upload) {
        let old = try await node.begin(sampleBytes(2500))
        switch first {
        case .append: _ = try await node.append(old.content.prefix(600), to: old, at: 0)
        case .native: await node.breakOff(0, of: old, after: 600)
        }
        return (old, other(old, seed: 2))
    }

    private func other(_ upload: Upload, seed: UInt64) -> Upload {
        Upload(
            id: upload.id, owner: upload.owner, content: sampleBytes(2500, seed: seed),
            chunkSize: 1000)
    }

    /// The offset at which a body for the first chunk would go on.
    private func expected(_ upload: Upload, on node: Node) async throws -> Int64? {
        let put = upload.put(0, from: 999)
        let body = ScriptedBody([], announcing: 1)
        let error = await #expect(throws: EngineError.self) {
            try await node.put(put, of: upload, body)
        }
        #expect(error?.code == .offsetMismatch)
        return error?.expectedOffset
    }

    /// Names of the session's staging files.
    private func stagingNames(_ upload: Upload) throws -> [String] {
        let shelf = upload.id.text.prefix(2)
        return try POSIXFileSystem().list("\(fixture.dataPath)/staging/\(shelf)").sorted()
    }

    @Test(arguments: First.allCases, [0, 300, 600, 999])
    func `an interrupted body with another digest discards nothing`(
        first: First, count: Int
    ) async throws {
        var node = try await fixture.start()
        let (old, new) = try await begun(by: first, on: node)
        await node.breakOff(0, of: new, after: count)
        #expect(try await node.offset(of: old) == 600)
        node = try await node.restart()
        #expect(try await node.offset(of: old) == 600)
        #expect(try await node.status(of: old).partialChunks.map(\.receivedBytes) == [600])
        _ = try await node.append(old.content.dropFirst(600), to: old, at: 600)
        #expect(try stagingNames(old) == [old.id.text])
        #expect(try await node.content(of: try await node.finish(old)) == old.content)
    }

    @Test(arguments: First.allCases, [false, true])
    func `a body with another digest goes on inside the chunk and replaces the earlier bytes`(
        first: First, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let (old, new) = try await begun(by: first, on: node)
        // The append's client may have sent the same file, so the service compares the first bytes
        // before they count.
        await node.breakOff(0, of: new, after: 700)
        #expect(try await expected(new, on: node) == 700)
        await node.breakOff(0, of: new, from: 700, after: 100)
        #expect(try stagingNames(old) == [old.id.text, "\(old.id.text).0"])
        if afterRestart { node = try await node.restart() }
        #expect(try await expected(new, on: node) == 800)
        #expect(try await node.offset(of: old) == 600)
        #expect(try await node.put(0, of: new, from: 800).isCreated)
        #expect(try await node.offset(of: old) == 1000)
        #expect(try stagingNames(old) == [old.id.text])
        for index in 1...2 { try await node.put(index, of: new) }
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `two bodies of a chunk are kept, and a third counts once it is complete`()
        async throws
    {
        var node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        let third = other(old, seed: 3)
        await node.breakOff(0, of: new, after: 400)
        await node.breakOff(0, of: third, after: 500)
        node = try await node.restart()
        #expect(try await expected(old, on: node) == 600)
        #expect(try await expected(new, on: node) == 400)
        #expect(try await expected(third, on: node) == 0)
        #expect(try stagingNames(old) == [old.id.text, "\(old.id.text).0"])
        #expect(try await node.put(0, of: third).isCreated)
        #expect(try stagingNames(old) == [old.id.text])
        for index in 1...2 { try await node.put(index, of: third) }
        #expect(try await node.content(of: try await node.finish(third)) == third.content)
    }

    @Test func `a session keeps a bounded number of rivals`() async throws {
        let node = try await fixture.start()
        let count = LiveSession.maxRivalCount + 3
        let old = try await node.begin(sampleBytes(count * 1000))
        let new = Upload(
            id: old.id, owner: old.owner, content: sampleBytes(count * 1000, seed: 2),
            chunkSize: 1000)
        for index in 0..<count {
            await node.breakOff(index, of: old, after: 600)
            await node.breakOff(index, of: new, after: 400)
        }
        #expect(try stagingNames(old).count == 1 + LiveSession.maxRivalCount)
        // A body that is not kept when it breaks off still commits its chunk when it arrives
        // complete.
        for index in 0..<count { try await node.put(index, of: new) }
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `a rival with a wrong digest is discarded alone`() async throws {
        let node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        await node.breakOff(0, of: new, after: 400)
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(
                new.put(0, from: 400), of: new, ScriptedBody(old.chunk(0).dropFirst(400)))
        }
        #expect(try await expected(new, on: node) == 0)
        #expect(try await expected(old, on: node) == 600)
        #expect(try stagingNames(old) == [old.id.text])
        #expect(try await node.put(0, of: old, from: 600).isCreated)
    }

    @Test func `a native body that repeats the bytes of an append goes on after them`() async throws
    {
        let node = try await fixture.start()
        let (old, _) = try await begun(by: .append, on: node)
        await node.breakOff(0, of: old, after: 700)
        #expect(try await node.offset(of: old) == 700)
        #expect(try stagingNames(old) == [old.id.text])
        #expect(try await node.put(0, of: old).isCreated)
    }

    /// A client follows the status and the answers, after a bit in the first bytes of a chunk was
    /// damaged on its way.
    @Test(arguments: First.allCases, [false, true])
    func `a damaged bit in a partial costs its client two requests`(
        first: First, waits: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        var damaged = upload.content
        damaged[10] ^= 4
        switch first {
        case .append: _ = try await node.append(damaged.prefix(600), to: upload, at: 0)
        case .native:
            let body = ScriptedBody(damaged.prefix(600), announcing: 1000, ending: .breaksOff)
            // The body breaks off, so the request fails; its bytes are kept.
            _ = try? await node.put(upload.put(0), of: upload, body)
        }
        var exchanges = 0
        while try await node.status(of: upload).receivedChunks.isEmpty, exchanges < 10 {
            exchanges += 1
            let partial = try await node.status(of: upload).partialChunks.first
            let start = Int(partial?.receivedBytes ?? 0)
            let rest = upload.chunk(0).dropFirst(start)
            var body = ScriptedBody(rest, announcing: rest.count)
            body.awaitsContinue = waits
            do {
                try await node.put(upload.put(0, from: start), of: upload, body)
            } catch let error as EngineError {
                #expect(error.code == .chunkHashMismatch)
                #expect(try await node.status(of: upload).partialChunks.isEmpty)
                // The append's offset is not invalidated: only a native client claims that it is
                // wrong.
                #expect(try await node.offset(of: upload) == 600)
            }
        }
        #expect(exchanges == 2)
        for index in 1...2 { try await node.put(index, of: upload) }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a partial in doubt stays in doubt after a restart, and appends go on after it`()
        async throws
    {
        var node = try await fixture.start()
        let (old, new) = try await begun(by: .append, on: node)
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(0, of: new, from: 600)
        }
        node = try await node.restart()
        #expect(try await node.status(of: old).partialChunks.isEmpty)
        #expect(try await expected(new, on: node) == 0)
        _ = try await node.append(old.content[600..<700], to: old, at: 600)
        #expect(try await node.status(of: old).partialChunks.isEmpty)
        _ = try await node.append(old.content.dropFirst(700), to: old, at: 700)
        #expect(try await node.content(of: try await node.finish(old)) == old.content)
    }

    @Test func `a rival that is damaged at rest is discarded, and the partial stays`() async throws
    {
        let node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        await node.breakOff(0, of: new, after: 400)
        let path = "\(fixture.dataPath)/staging/\(old.id.text.prefix(2))/\(old.id.text).0"
        let file = try POSIXFileSystem().open(path, .readWrite)
        try withUnsafeBytes(of: ~new.content[100]) { try file.write($0, at: 100) }
        try file.close()
        await #expect(throws: EngineError(.unavailable)) {
            try await node.put(0, of: new, from: 400)
        }
        #expect(try await node.offset(of: old) == 600)
        #expect(try await expected(new, on: node) == 0)
        try await node.put(0, of: new)
        for index in 1...2 { try await node.put(index, of: new) }
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `a rival file without a row is removed after a stop, and a recorded rival stays`()
        async throws
    {
        let node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        await node.breakOff(0, of: new, after: 400)
        try await node.kill()
        let shelf = "\(fixture.dataPath)/staging/\(old.id.text.prefix(2))"
        let file = try POSIXFileSystem().open("\(shelf)/\(old.id.text).1", .createNew)
        try file.close()
        let next = try await fixture.start()
        #expect(try stagingNames(old) == [old.id.text, "\(old.id.text).0"])
        #expect(try await expected(new, on: next) == 400)
        // A rival whose file is lost is not announced any more.
        try await next.kill()
        _ = try POSIXFileSystem().remove("\(shelf)/\(old.id.text).0")
        let last = try await fixture.start()
        await #expect(throws: EngineError(.offsetMismatch)) {
            try await last.put(0, of: new, from: 400)
        }
        #expect(try await last.put(0, of: new).isCreated)
    }

    @Test func `cancelling a session removes the files of its rivals`() async throws {
        let node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        await node.breakOff(0, of: new, after: 400)
        try await node.engine.cancelSession(old.id, owner: old.owner)
        #expect(try stagingNames(old).isEmpty)
    }

    /// The body is complete, and the process ends at one of the steps that put it in its place.
    @Test(arguments: 0...6)
    func `a stop while a rival replaces a partial loses at most that partial`(
        step: Int
    ) async throws {
        let node = try await fixture.start()
        let (old, new) = try await begun(by: .native, on: node)
        await node.breakOff(0, of: new, after: 700)
        // The rest is two writes of the rival, then the copies.
        fixture.disk.apply { call, count in call == .write && count >= step ? EIO : nil }
        let outcome = try? await node.put(0, of: new, from: 700)
        fixture.disk.heal()
        let next = try await node.restart()
        if outcome == nil {
            #expect(try await expected(new, on: next) ?? 0 >= 700)
            let offset = try await next.offset(of: old)
            #expect(offset == 600 || offset == 0)
        }
        try await next.put(0, of: new, from: Int(outcome == nil ? 700 : 0))
        for index in 1...2 { try await next.put(index, of: new) }
        #expect(try await next.content(of: try await next.finish(new)) == new.content)
    }
}
