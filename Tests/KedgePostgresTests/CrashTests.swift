import Dispatch
import KedgeEngine
import KedgeLocks
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// The server dies at the commit of each step in the life of a session, and another node goes on.
@Suite(.timeLimit(.minutes(2))) struct `Crashes of PostgreSQL` {
    /// From its making to the removal of what it left. Every step but the claims says the same again.
    private static func life(_ record: SessionRecord, _ fileID: FileID) -> [MetadataOperation] {
        let key = record.stagingKey
        let claim = { MetadataOperation.claimGarbage(now: Sample.time($0), until: Sample.time($1)) }
        return [
            .create(
                record, key: IdempotencyKey(key: "key", fingerprint: "request"), adopting: nil,
                in: SessionRoom(maxOpenCount: 1)),
            .setStagingState("upload", key, replacing: nil),
            .savePartial(Sample.partial(1), Sample.touch(record, prefix: 50)),
            .commit([Sample.chunk(0), Sample.chunk(1)], Sample.touch(record, prefix: 200)),
            .commit([Sample.chunk(2)], Sample.touch(record)),
            .takeFinalize(
                record.id, expecting: Sample.digest("a"),
                WorkLease(holder: "node", now: Sample.time(10), until: Sample.time(70))),
            .beginFinalize(record.id, Sample.digest("a"), fileID),
            .completeFinalize(record.id, at: Sample.time(20), location: "objects/1"),
            .deleteFile(fileID, record.owner, at: Sample.time(30)),
            claim(40, 100),
            // What a claim took that nobody heard of comes again.
            claim(100, 160),
            .forgetGarbage(.staging(key), claimedUntil: Sample.time(160)),
            .expire(now: Sample.time(3000), graceEnd: Sample.time(3000)),
        ]
    }

    @Test(arguments: [CuttingProxy.Cut.question, .answer])
    func `whatever was answered is there after a crash, and what was not can be asked again`(
        _ cut: CuttingProxy.Cut
    ) async throws {
        let server = try await PostgresServer.start()
        let proxy = try CuttingProxy(upstreamPort: server.port)
        let unlucky = try await openStore(
            "postgresql://kedge@127.0.0.1:\(proxy.port)/kedge?listen=off&sslmode=disable"
        ) { $0.patience = .seconds(1) }
        let other = try await openStore(server.url)
        let model = SimulatedMetadata()
        let record = Sample.session()
        var known = MetadataKnowledge()
        known.sessions = [record.id]
        known.files = [.random()]
        known.digests = [Sample.digest("a")]
        for (number, step) in Self.life(record, known.files[0]).enumerated() {
            let place: Comment = "step \(number): \(step)"
            try await crash(server, at: step, of: unlucky, proxy, cut, place)
            // Once is twice, unless the crash came before the commit.
            let first = await step.run(on: model)
            let second = cut == .answer && number > 0 ? await step.run(on: model) : first
            #expect(await step.run(on: other) == second, place)
            let seen = try await MetadataObservation(of: other, about: known)
            let expected = try await MetadataObservation(of: model, about: known)
            #expect(seen.difference(to: expected) == nil, place)
        }
        #expect(try await other.databaseFaults() == [])
        try await unlucky.close()
        try await other.close()
        proxy.stop()
        await server.stop()
    }

    /// Lets the server die at the step's commit, or just after, and brings it back.
    private func crash(
        _ server: PostgresServer, at step: MetadataOperation, of store: PostgresStore,
        _ proxy: CuttingProxy, _ cut: CuttingProxy.Cut, _ place: Comment
    ) async throws {
        let isDead = DispatchSemaphore(value: 0)
        let wasKilled = Mutex(false)
        proxy.cutNextCommit(cut) {
            Task {
                // A server that lives on fails the test by what the step answers.
                try? await server.kill()
                isDead.signal()
            }
            isDead.wait()
            wasKilled.withLock { $0 = true }
        }
        guard case .refused(.unavailable) = await step.run(on: store) else {
            Issue.record("nobody was there to answer; \(place)")
            return
        }
        #expect(wasKilled.withLock { $0 }, place)
        try await server.restart()
    }
}
