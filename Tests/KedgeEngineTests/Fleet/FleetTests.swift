import KedgeEngine
import KedgeHash
import KedgeModel
import KedgePostgres
import KedgeS3
import KedgeTesting
import Testing

/// Nodes that share a database and a bucket, and nothing else.
@Suite(.timeLimit(.minutes(2))) struct FleetTests {
    @Test(arguments: [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]])
    func `chunks sent to any node in any order make one file`(
        order: [Int]
    ) async throws {
        try await withNodes(3) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(5500))
            for (turn, index) in order.enumerated() {
                #expect(try await nodes[turn % 3].put(index, of: upload).isCreated)
            }
            let status = try await nodes[2].status(of: upload)
            #expect(status.receivedBytes == 5500)
            let file = try await nodes[1].finishWaiting(upload)
            #expect(file.digest == upload.digest)
            for node in nodes { #expect(try await node.content(of: file) == upload.content) }
        }
    }

    @Test func `a chunk interrupted on one node goes on at its offset on another`() async throws {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            await nodes[0].breakOff(0, of: upload, after: 700)
            let status = try await nodes[1].status(of: upload)
            #expect(status.partialChunks.map(\.receivedBytes) == [700])
            await nodes[1].breakOff(0, of: upload, from: 700, after: 100)
            #expect(try await nodes[0].put(0, of: upload, from: 800).isCreated)
            try await nodes[1].put(1, of: upload)
            try await nodes[0].put(2, of: upload)
            let file = try await nodes[1].finishWaiting(upload)
            #expect(try await nodes[0].content(of: file) == upload.content)
        }
    }

    /// Two files have bodies for one chunk, and each body goes to two nodes.
    @Test func `a rival that one node left beside a partial goes on at another node`()
        async throws
    {
        try await withNodes(2) { _, nodes in
            let old = try await nodes[0].begin(sampleBytes(2500))
            let new = Upload(
                id: old.id, owner: old.owner, content: sampleBytes(2500, seed: 2), chunkSize: 1000)
            _ = try await nodes[0].append(old.content.prefix(600), to: old, at: 0)
            await nodes[1].breakOff(0, of: new, after: 700)
            await nodes[0].breakOff(0, of: new, from: 700, after: 100)
            for node in nodes { #expect(try await node.offset(of: old) == 600) }
            _ = try await nodes[1].append(old.content[600..<900], to: old, at: 600)
            #expect(try await nodes[1].put(0, of: new, from: 800).isCreated)
            for index in 1...2 { try await nodes[index % 2].put(index, of: new) }
            let file = try await nodes[0].finishWaiting(new)
            #expect(try await nodes[1].content(of: file) == new.content)
        }
    }

    @Test func `a chunk that another node has is already received, and other bytes conflict`()
        async throws
    {
        try await withNodes(2) { fixture, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            try await nodes[0].put(1, of: upload)
            let before = try await fixture.bucket.state().count(.uploadPart)
            #expect(try await !nodes[1].put(1, of: upload).isCreated)
            let other = upload.put(1, digest: SHA256Hasher.digest(of: [1]))
            await #expect(throws: EngineError(.chunkConflict)) {
                try await nodes[1].put(other, of: upload, ScriptedBody([], announcing: 1000))
            }
            #expect(try await fixture.bucket.state().count(.uploadPart) >= before)
            #expect(try await nodes[1].status(of: upload).receivedBytes == 1000)
        }
    }

    @Test func `a newer writer takes over from a hung writer on another node`()
        async throws
    {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(1000))
            let body = ScriptedBody(
                upload.chunk(0).prefix(600), announcing: 1000, ending: .hangs)
            let old = Task { try await nodes[0].put(upload.put(0), of: upload, body) }
            await body.watch.isHanging.wait()
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try await nodes[1].put(0, of: upload).isCreated)
            let took = clock.now - start
            await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
            #expect(took < .seconds(2))
            let file = try await nodes[0].finishWaiting(upload)
            #expect(try await nodes[1].content(of: file) == upload.content)
        }
    }

    @Test func `the chunk of a node that died can be written at once`() async throws {
        let fixture = try await FleetEnvironment()
        let (dead, alive) = (try await fixture.start(), try await fixture.start())
        let upload = try await dead.begin(sampleBytes(1000))
        let body = ScriptedBody(upload.chunk(0).prefix(600), announcing: 1000, ending: .hangs)
        let old = Task { try await dead.put(upload.put(0), of: upload, body) }
        await body.watch.isHanging.wait()
        try await dead.kill()
        await #expect(throws: EngineError.self) { try await old.value }
        #expect(try await alive.put(0, of: upload).isCreated)
        let file = try await alive.finishWaiting(upload)
        #expect(try await alive.content(of: file) == upload.content)
        try await alive.stop()
    }

    @Test func `a cancel on one node stops the writers of another`() async throws {
        try await withNodes(2) { fixture, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            try await nodes[0].put(1, of: upload)
            let body = ScriptedBody(upload.chunk(0).prefix(600), announcing: 1000, ending: .hangs)
            let writer = Task { try await nodes[0].put(upload.put(0), of: upload, body) }
            await body.watch.isHanging.wait()
            try await nodes[1].engine.cancelSession(upload.id, owner: upload.owner)
            await #expect(throws: EngineError(.sessionClosed)) { try await writer.value }
            await #expect(throws: EngineError(.sessionClosed)) {
                try await nodes[0].put(2, of: upload)
            }
            #expect(try await fixture.sweepUntilEmpty(with: nodes))
        }
    }

    @Test func `nodes that finalize at once agree on one file`() async throws {
        try await withNodes(3) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(5500))
            for index in 0..<6 { try await nodes[index % 3].put(index, of: upload) }
            let files = try await withThrowingTaskGroup { group in
                for node in nodes {
                    for _ in 0..<3 {
                        group.addTask { try await node.finishWaiting(upload) }
                    }
                }
                return try await group.reduce(into: Set<FileRecord>()) { $0.insert($1) }
            }
            #expect(files.count == 1)
            let file = try #require(files.first)
            #expect(try await nodes[2].content(of: file) == upload.content)
        }
    }

    @Test func `equal bytes are stored once after a scrub, and go with their last file`()
        async throws
    {
        func shorten(_ configuration: inout EngineConfiguration) {
            configuration.supersededLifetime = .zero
        }
        try await withNodes(2, shorten) { fixture, nodes in
            var files: [FileRecord] = []
            for node in nodes {
                let upload = try await node.begin(sampleBytes(2500))
                for index in 0..<3 { try await node.put(index, of: upload) }
                files.append(try await node.finishWaiting(upload))
            }
            for node in nodes { try await node.engine.sweep() }
            #expect(try await fixture.leftovers().count == 2)
            try await nodes[0].scrubAll()
            for node in nodes { try await node.engine.sweep() }
            #expect(try await fixture.leftovers().count == 1)
            files = try await nodes[0].engine.files(of: .tester, after: nil, limit: 9)
            try await nodes[1].engine.deleteFile(files[0].id, owner: files[0].owner)
            #expect(try await nodes[0].content(of: files[1]) == sampleBytes(2500))
            try await nodes[0].engine.deleteFile(files[1].id, owner: files[1].owner)
            #expect(try await fixture.sweepUntilEmpty(with: nodes))
        }
    }

    @Test
    func `an upload of the same bytes restores a missing blob for every file that has it`()
        async throws
    {
        try await withNodes(2) { fixture, nodes in
            var files: [FileRecord] = []
            for (number, node) in nodes.enumerated() {
                let upload = try await node.begin(sampleBytes(2500))
                for index in 0..<3 { try await node.put(index, of: upload) }
                files.append(try await node.finishWaiting(upload))
                guard number == 0 else { continue }
                // The bucket loses the object.
                try await node.bytes.removeStaging(
                    StagingKey(upload.id), state: nil, keeping: nil)
                await #expect(throws: EngineError.self) { try await node.content(of: files[0]) }
            }
            for node in nodes { try await node.engine.sweep() }
            for file in files {
                let now = try await nodes[0].engine.file(file.id, owner: file.owner)
                #expect(try await nodes[0].content(of: now) == sampleBytes(2500))
            }
        }
    }

    @Test func `another node completes a promised finalize when the first node dies`()
        async throws
    {
        let fixture = try await FleetEnvironment()
        // The request does not wait, so its finalize job is all that is left of it.
        let dying = try await fixture.start { $0.finalizeTimeout = .zero }
        let upload = try await dying.begin(sampleBytes(5500))
        for index in (0..<6).reversed() { try await dying.put(index, of: upload) }
        try await fixture.bucket.fail(
            .completeMultipartUpload, for: .seconds(3), key: upload.id.text,
            with: .status(503, "SlowDown"))
        let request = Task { try await dying.engine.finalize(upload.id, owner: upload.owner) }
        try await Task.sleep(for: .milliseconds(300))
        try await dying.kill()
        _ = await request.result
        let alive = try await fixture.start()
        // No client asks again: the finalize job alone must suffice.
        #expect(
            try await eventually(within: .seconds(30)) {
                try await alive.status(of: upload).state == .completed
            })
        let file = try await alive.finishWaiting(upload)
        #expect(try await alive.content(of: file) == upload.content)
        try await alive.stop()
    }

    @Test func `a wrong expected digest is a mismatch, and the session stays open`() async throws {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            for index in 0..<3 { try await nodes[index % 2].put(index, of: upload) }
            for node in nodes {
                await #expect(throws: EngineError(.integrityMismatch)) {
                    while case .pending = try await node.engine.finalize(
                        upload.id, owner: upload.owner,
                        expecting: SHA256Hasher.digest(of: [1]))
                    {
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
            }
            let file = try await nodes[1].finishWaiting(upload)
            #expect(try await nodes[0].content(of: file) == upload.content)
        }
    }

    @Test func `appends go on where another node's ended`() async throws {
        try await withNodes(2) { _, nodes in
            let content = sampleBytes(3300)
            let upload = try await nodes[0].begin(content, sized: false)
            var offset = 0
            for (turn, end) in [400, 1500, 1501, 3000].enumerated() {
                let new = try await nodes[turn % 2].append(
                    content[offset..<end], to: upload, at: offset)
                #expect(new == Int64(end))
                offset = end
            }
            _ = try await nodes[0].append(
                content[offset...], to: upload, at: offset, completes: true)
            let file = try await nodes[1].finishWaiting(upload)
            #expect(file.digest == SHA256Hasher.digest(of: content))
            #expect(try await nodes[0].content(of: file) == content)
        }
    }

    @Test func `rows bound to one byte store refuse another`() async throws {
        let fixture = try await FleetEnvironment()
        let node = try await fixture.start()
        await #expect(throws: MetadataError.self) {
            try await node.metadata.bind(toBytesAt: "disk:elsewhere")
        }
        try await node.stop()
    }
}
