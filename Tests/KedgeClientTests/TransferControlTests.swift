import Foundation
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Observation and control of transfers, also from another process.
@Suite(.timeLimit(.minutes(1)))
struct TransferControlTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isChunk: @Sendable (FakeServer.Seen) -> Bool = { $0.method == "PUT" }

    init() throws { fixture = try TransferEnvironment() }

    private func expectCompleted(_ snapshot: TransferSnapshot) {
        fixture.expectUploaded(snapshot, bytes)
    }

    // R109: another client stands for another process.
    @Test func `another process pauses, resumes and cancels a transfer`() async throws {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), count: 100, when: isChunk)
        let (client, other) = (try await fixture.client(), try await fixture.client())
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let start = ContinuousClock.now
        try await other.pause(id)
        let paused = try await run.value
        // This takes a second on an idle machine; the tests of this package keep it busy.
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(paused.state == .paused)
        #expect(paused.pauseReason == .user)
        try await other.resume(id)
        let second = Task { try await client.run(id) }
        #expect(try await eventually { try await other.transfer(id).state == .uploading })
        try await other.cancel(id)
        #expect(try await second.value.state == .canceled)
        // R102.
        #expect(try await eventually { fixture.sessions.allSatisfy { $0.state == .canceled } })
    }

    @Test func `a suspended transfer is ready for the next run`() async throws {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), count: 4, when: isChunk)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try await client.suspendAll()
        #expect(try await run.value.pauseReason == .shutdown)
        gate.open()
        let results = try await (try await fixture.client()).runQueued()
        #expect(results.map(\.id) == [id])
        for result in results { expectCompleted(result) }
    }

    @Test func `suspending also stops transfers that wait for a slot`() async throws {
        let gate = Gate()
        fixture.plan(.wait(gate), count: 100, when: isChunk)
        let client = try await fixture.client { $0.maxConcurrentTransfers = 1 }
        var ids: [TransferID] = []
        for name in ["a", "b", "c"] {
            ids.append(try await client.enqueueUpload(path: try fixture.write(name, bytes)))
        }
        let run = Task { try await client.runQueued() }
        await gate.waitForArrival()
        try await client.suspendAll()
        let states = try await run.value.map(\.state)
        #expect(Set(ids).count == 3)
        #expect(states.filter { $0 == .paused }.count == 1)
        #expect(states.filter { $0 == .queued }.count == 2)
    }

    @Test func `a second process that runs the same command watches the first`() async throws {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), count: 1, when: isChunk)
        let (client, other) = (try await fixture.client(), try await fixture.client())
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let first = Task { try await client.run(id) }
        await gate.waitForArrival()
        #expect(try await other.enqueueUpload(path: fixture.path("source.bin")) == id)
        let second = Task { try await other.run(id) }
        gate.open()
        expectCompleted(try await first.value)
        expectCompleted(try await second.value)
        #expect(fixture.sessions.count == 1)
    }

    // R105, R108.
    @Test func `observers see progress that never decreases, and the end`() async throws {
        try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        async let result = client.run(id)
        var seen: [TransferSnapshot] = []
        for try await snapshot in client.snapshots(of: id) { seen.append(snapshot) }
        #expect(seen.last?.state == .completed)
        #expect(seen.map(\.bytesTransferred) == seen.map(\.bytesTransferred).sorted())
        expectCompleted(try await result)
    }

    @Test func `a diagnosis contains no secret`() async throws {
        try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let snapshot = try await client.run(id)
        let diagnosis = try await client.diagnose(snapshot.id)
        let text = String(decoding: try JSONEncoder().encode(diagnosis), as: UTF8.self)
        #expect(!text.contains("secret"))
        #expect(!text.contains(fixture.directory))
        #expect(diagnosis.lastServerStatus == 200)
        #expect(diagnosis.lastGoodByteOffset == 600_000)
        #expect(diagnosis.totalAttempts == 10)
        #expect(diagnosis.missingRanges.isEmpty)
    }
}
