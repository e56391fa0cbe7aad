import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct OpenSessionTests {
    private func fixture(_ limit: Int) throws -> EngineEnvironment {
        try EngineEnvironment {
            $0.maxOpenSessions = limit
            $0.emptySessionLifetime = .seconds(3600)
        }
    }

    private func begin(_ node: Node, from address: String) async throws -> Upload {
        let content = sampleBytes(2500)
        let status = try await node.engine.createSession(
            NewSession(
                fileName: "a", fileSize: 2500, chunkSize: 1000, client: ClientAddress(address)),
            owner: .tester)
        return Upload(
            id: status.sessionId, owner: .tester, content: content, chunkSize: 1000)
    }

    private func isGone(_ upload: Upload, on node: Node) async -> Bool {
        do {
            _ = try await node.status(of: upload)
            return false
        } catch {
            return (error as? EngineError)?.code == .sessionNotFound
        }
    }

    @Test func `the oldest empty session of the address with most of them makes room`()
        async throws
    {
        let node = try await fixture(3).start()
        let lonely = try await begin(node, from: "192.0.2.1")
        let many = try await begin(node, from: "2001:db8::1")
        let more = try await begin(node, from: "2001:db8::2")
        let new = try await begin(node, from: "192.0.2.2")
        #expect(await isGone(many, on: node))
        for kept in [lonely, more, new] {
            #expect(await !isGone(kept, on: node))
        }
        await #expect(throws: EngineError(.sessionNotFound)) { try await node.put(0, of: many) }
    }

    @Test func `an upload with bytes is never ended for another`() async throws {
        let node = try await fixture(2).start()
        let (first, second) = (
            try await begin(node, from: "192.0.2.1"), try await begin(node, from: "192.0.2.1")
        )
        try await node.put(0, of: first)
        await node.breakOff(1, of: second, after: 300)
        await #expect(throws: EngineError(.tooManySessions)) {
            try await begin(node, from: "192.0.2.2")
        }
        try await node.engine.cancelSession(first.id, owner: .tester)
        _ = try await begin(node, from: "192.0.2.2")
        #expect(try await node.status(of: second).receivedBytes == 300)
    }

    /// The first bytes belong to an append with a checksum, and count at its end.
    @Test func `an upload whose first bytes are on their way neither makes room nor expires`()
        async throws
    {
        let fixture = try fixture(1)
        let node = try await fixture.start()
        let upload = try await begin(node, from: "192.0.2.1")
        let body = ScriptedBody(upload.content.prefix(100), announcing: 2500, ending: .hangs)
        let writing = Task {
            try await node.engine.append(
                AppendPut(offset: 0, checksum: .sha256(upload.digest)), to: upload.id,
                owner: .tester, body: body)
        }
        await body.watch.isHanging.wait()
        await #expect(throws: EngineError(.tooManySessions)) {
            try await begin(node, from: "192.0.2.2")
        }
        for _ in 0..<6 {
            fixture.clock.advance(by: .seconds(1200))
            try await node.engine.sweep()
        }
        #expect(try await node.status(of: upload).state == .open)
        writing.cancel()
        _ = await writing.result
        fixture.clock.advance(by: .seconds(3601))
        try await node.engine.sweep()
        await #expect(throws: EngineError(.sessionExpired)) { try await node.status(of: upload) }
    }

    @Test func `a session without a byte ends after an hour, and one with a byte lives on`()
        async throws
    {
        let fixture = try fixture(10)
        let node = try await fixture.start()
        let (empty, begun) = (
            try await begin(node, from: "192.0.2.1"), try await begin(node, from: "192.0.2.1")
        )
        await node.breakOff(0, of: begun, after: 1)
        fixture.clock.advance(by: .seconds(3599))
        // A status request does not count as a byte.
        _ = try await node.status(of: empty)
        fixture.clock.advance(by: .seconds(2))
        try await node.engine.sweep()
        await #expect(throws: EngineError(.sessionExpired)) { try await node.status(of: empty) }
        #expect(try await node.status(of: begun).state == .open)
        fixture.clock.advance(by: .seconds(6 * 24 * 3600))
        #expect(try await node.status(of: begun).state == .open)
    }

    @Test func `a session that adopts bytes lives as one with bytes`() async throws {
        let fixture = try fixture(10)
        let node = try await fixture.start()
        let old = try await begin(node, from: "192.0.2.1")
        try await node.put(0, of: old)
        fixture.clock.advance(by: .seconds(7 * 24 * 3600 + 1))
        let new = try await node.begin(old.content, adopting: old.id)
        fixture.clock.advance(by: .seconds(7200))
        #expect(try await node.status(of: new).receivedBytes == 1000)
    }
}
