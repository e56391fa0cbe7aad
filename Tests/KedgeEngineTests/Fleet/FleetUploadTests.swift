import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// Operations of tus and IETF uploads, on nodes that share a database and a bucket.
@Suite(.timeLimit(.minutes(2))) struct FleetUploadTests {
    private func part(_ size: Int, seed: UInt64, on node: TestNode) async throws -> Upload {
        let part = try await node.begin(sampleBytes(size, seed: seed), sized: false)
        _ = try await node.append(part.content, to: part, at: 0, completes: true)
        return part
    }

    @Test func `partial uploads of different nodes become one file on any node`() async throws {
        try await withNodes(3) { fixture, nodes in
            let parts = [
                try await part(2300, seed: 1, on: nodes[0]),
                try await part(700, seed: 2, on: nodes[1]),
                try await part(0, seed: 3, on: nodes[1]),
                try await part(1000, seed: 4, on: nodes[0]),
            ]
            _ = try await nodes[0].finishWaiting(parts[3])
            for node in nodes.reversed() {
                let whole = try await node.engine.createSession(
                    NewSession(
                        fileName: "whole.bin", fileSize: nil, chunkSize: 1000,
                        sourceIDs: parts.map(\.id)),
                    owner: .tester)
                // Two nodes are asked, and one of them does the work.
                async let others = nodes[1].made(whole.sessionId)
                let file = try await nodes[0].made(whole.sessionId)
                #expect(try await others.id == file.id)
                #expect(try await nodes[1].content(of: file) == parts.flatMap(\.content))
                try await node.engine.deleteFile(file.id, owner: .tester)
            }
            // A copied partial upload is still an upload like any other.
            for part in parts.dropLast() {
                try await nodes[2].engine.cancelSession(part.id, owner: part.owner)
            }
            for node in nodes { try await node.engine.sweep() }
            #expect(try await fixture.leftovers().count == 1)
        }
    }

    @Test func `partial bodies of a chunk sent to different nodes become the chunk`() async throws {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            for (turn, part) in [0..<300, 300..<301, 301..<999].enumerated() {
                let count = Int64(part.upperBound)
                // The second request repeats the first, as after an answer that was lost with its
                // node.
                for node in [nodes[turn % 2], nodes[(turn + 1) % 2]] {
                    #expect(try await node.putPart(1, of: upload, part).partByteCount == count)
                }
            }
            #expect(try await nodes[1].put(1, of: upload, from: 999).isCreated)
            try await nodes[0].put(0, of: upload)
            try await nodes[1].put(2, of: upload)
            let file = try await nodes[0].finishWaiting(upload)
            #expect(try await nodes[1].content(of: file) == upload.content)
        }
    }

    @Test func `a refused body in a node's spool does not count against the stored chunk`()
        async throws
    {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            try await nodes[0].put(0, of: upload)
            let error = await #expect(throws: EngineError.self) {
                let wrong = ScriptedBody(sampleBytes(1000, seed: 9))
                try await nodes[0].put(upload.put(1), of: upload, wrong)
            }
            #expect(error?.code == .chunkHashMismatch)
            try await nodes[1].put(1, of: upload)
            try await nodes[0].put(2, of: upload)
            let file = try await nodes[0].finishWaiting(upload)
            #expect(try await nodes[1].content(of: file) == upload.content)
        }
    }

    @Test func `a node that found damage before another node repaired it invalidates nothing`()
        async throws
    {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            for index in 0..<3 { try await nodes[0].put(index, of: upload) }
            let progress = try #require(
                try await nodes[0].metadata.progress(of: upload.id, owner: upload.owner))
            let store = nodes[0].metadata
            try await store.invalidateDamagedChunks(
                [1], of: upload.id, knowing: progress.revision)
            try await nodes[1].put(1, of: upload)
            await #expect(throws: MetadataError.writerReplaced) {
                try await store.invalidateDamagedChunks(
                    [1], of: upload.id, knowing: progress.revision)
            }
            let file = try await nodes[1].finishWaiting(upload)
            #expect(try await nodes[0].content(of: file) == upload.content)
        }
    }

    @Test func `a node stops an append on another node and returns the offset after all its bytes`()
        async throws
    {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            let body = ScriptedBody(upload.content.prefix(1700), ending: .hangs)
            let append = Task {
                try await nodes[0].engine.append(
                    AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
            }
            await body.watch.isHanging.wait()
            // The first chunk is committed while the second one is received.
            #expect(
                try await eventually {
                    let view = try await nodes[1].engine.uploadView(
                        of: upload.id, owner: upload.owner)
                    return view.offset == 1000
                })
            let settled = try await nodes[1].engine.uploadView(
                of: upload.id, owner: upload.owner, stopsAppend: true)
            #expect(settled.offset == 1700)
            await #expect(throws: EngineError(.writerReplaced)) { try await append.value }
            let end = try await nodes[1].append(
                upload.content.dropFirst(1700), to: upload, at: 1700)
            #expect(end == 2500)
        }
    }

    /// PostgreSQL does not log leases. The stalled node learns nothing, like a suspended one.
    @Test(arguments: [false, true])
    func `a node that wakes after the leases were lost invalidates no acknowledged bytes`(
        fromStart: Bool
    ) async throws {
        try await withNodes(2) { fixture, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500))
            if !fromStart {
                _ = try await nodes[0].append(upload.content.prefix(100), to: upload, at: 0)
            }
            let start = fromStart ? 0 : 100
            nodes[0].fleetTask.cancel()
            let body = ScriptedBody(upload.content[start..<300], ending: .hangs)
            let stalled = Task {
                try await nodes[0].engine.append(
                    AppendPut(offset: Int64(start)), to: upload.id, owner: upload.owner, body: body)
            }
            await body.watch.isHanging.wait()
            let end = try await nodes[1].append(
                upload.content[start..<900], to: upload, at: start)
            #expect(end == 900)
            try await fixture.database.query("DELETE FROM writer_lease", in: fixture.databaseURL)
            await nodes[0].engine.interruptWriters()
            await #expect(throws: EngineError.self) { try await stalled.value }
            #expect(try await nodes[1].offset(of: upload) == 900)
            _ = try await nodes[1].append(upload.content.dropFirst(900), to: upload, at: 900)
            let file = try await nodes[1].engine.finish(upload.id, owner: upload.owner)
            #expect(try await nodes[1].content(of: file) == upload.content)
        }
    }

    @Test func `nodes agree on the first declared size and refuse another`() async throws {
        try await withNodes(2) { _, nodes in
            let upload = try await nodes[0].begin(sampleBytes(2500), sized: false)
            _ = try await nodes[1].engine.append(
                AppendPut(offset: 0, declaredSize: 2500), to: upload.id, owner: upload.owner,
                body: ScriptedBody(upload.content.prefix(1300)))
            await #expect(throws: EngineError(.sizeMismatch)) {
                try await nodes[0].engine.append(
                    AppendPut(offset: 1300, declaredSize: 2400), to: upload.id,
                    owner: upload.owner, body: ScriptedBody([1]))
            }
            _ = try await nodes[0].append(
                upload.content.dropFirst(1300), to: upload, at: 1300)
            let file = try await nodes[1].engine.finish(upload.id, owner: upload.owner)
            #expect(try await nodes[0].content(of: file) == upload.content)
        }
    }
}
