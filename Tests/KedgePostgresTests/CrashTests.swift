import Dispatch
import KedgeEngine
import KedgeLocks
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// The database server dies at the commit of each step in the life of a session, and another node
/// continues.
@Suite(.timeLimit(.minutes(2))) struct CrashTests {
    /// The life of a session, from its creation to the removal of its garbage. Every step except
    /// the claims is idempotent.
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
            // Garbage of a claim whose answer was lost comes again after the lease.
            claim(100, 160),
            .forgetGarbage(.staging(key), claimedUntil: Sample.time(160)),
            .expire(now: Sample.time(3000), graceEnd: Sample.time(3000)),
        ]
    }

    @Test(arguments: [CommitCutter.Cut.question, .answer])
    func `an acknowledged step survives a crash, and any other step can be repeated`(
        _ cut: CommitCutter.Cut
    ) async throws {
        let server = try await PostgresServer.start()
        let proxy = try CommitCutter(upstreamPort: server.port)
        let unlucky = try await openStore(
            "postgresql://kedge@127.0.0.1:\(proxy.port)/kedge?listen=off&sslmode=disable"
        ) { $0.timeout = .seconds(1) }
        let other = try await openStore(server.url)
        let model = SimulatedMetadata()
        let record = Sample.session()
        var known = MetadataKnowledge()
        known.sessions = [record.id]
        known.files = [.random()]
        known.digests = [Sample.digest("a")]
        for (number, step) in Self.life(record, known.files[0]).enumerated() {
            let fixture: Comment = "step \(number): \(step)"
            try await crash(server, at: step, of: unlucky, proxy, cut, fixture)
            // A step that was committed before the crash runs twice.
            let first = await step.run(on: model)
            let second = cut == .answer && number > 0 ? await step.run(on: model) : first
            #expect(await step.run(on: other) == second, fixture)
            let seen = try await MetadataObservation(of: other, about: known)
            let expected = try await MetadataObservation(of: model, about: known)
            #expect(seen.difference(to: expected) == nil, fixture)
        }
        #expect(try await other.databaseFaults() == [])
        try await unlucky.close()
        try await other.close()
        proxy.stop()
        await server.stop()
    }

    /// Kills the server at the step's commit, or just after it, and restarts it.
    private func crash(
        _ server: PostgresServer, at step: MetadataOperation, of store: PostgresStore,
        _ proxy: CommitCutter, _ cut: CommitCutter.Cut, _ fixture: Comment
    ) async throws {
        let isDead = DispatchSemaphore(value: 0)
        let wasKilled = Mutex(false)
        proxy.cutNextCommit(cut) {
            Task {
                // If the server survives, the answer to the step fails the test.
                try? await server.kill()
                isDead.signal()
            }
            isDead.wait()
            wasKilled.withLock { $0 = true }
        }
        guard case .refused(.unavailable) = await step.run(on: store) else {
            Issue.record("nobody was there to answer; \(fixture)")
            return
        }
        #expect(wasKilled.withLock { $0 }, fixture)
        try await server.restart()
    }
}
