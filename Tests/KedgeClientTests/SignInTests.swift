import Foundation
import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Transfers whose token is missing, expired or refused.
@Suite(.timeLimit(.minutes(1)))
struct SignInTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(300_000)
    private static let refusal = Reply(problem: .unauthenticated)

    init() throws { fixture = try TransferEnvironment() }

    private func refuse(
        _ token: String, _ matches: @escaping @Sendable (FakeServer.Seen) -> Bool = { _ in true }
    ) {
        fixture.plan(.answer(Self.refusal), count: 1000) {
            $0.fields[.authorization] == "Bearer \(token)" && matches($0)
        }
    }

    /// Uploads with one connection until the token is refused at the third chunk.
    private func pausedUpload() async throws -> TransferSnapshot {
        refuse("secret") { $0.path.contains("/chunks/2") }
        let client = try await fixture.client { $0.connections = 1 }
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        let snapshot = try await client.run(id)
        try await client.close()
        return snapshot
    }

    private func tokens(_ part: String) -> [String?] {
        fixture.server.state.withLock {
            $0.seen.filter { $0.path.contains(part) }.map { $0.fields[.authorization] }
        }
    }

    @Test func `an upload whose token is refused is paused and loses nothing`() async throws {
        let paused = try await pausedUpload()
        #expect(paused.state == .paused)
        #expect(paused.pauseReason == .signInNeeded)
        #expect(paused.errorCode == .unauthenticated)
        #expect(!paused.isWaiting)
        #expect(paused.bytesTransferred == 2 * 64 << 10)
        let client = try await fixture.client { $0.token = "new" }
        #expect(try await client.transfer(paused.id) == paused, "the pause is in the record")
        #expect(try await client.diagnose(paused.id).pauseReason == .signInNeeded)
        #expect(try await client.resumableTransfers().map(\.id) == [paused.id])
        let done = try await client.runQueued()
        #expect(done.map(\.id) == [paused.id])
        fixture.expectUploaded(try #require(done.first), bytes)
        #expect(done.first?.pauseReason == nil)
    }

    @Test func `the same call continues an upload that waits for a token`() async throws {
        let paused = try await pausedUpload()
        let client = try await fixture.client { $0.token = "new" }
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        #expect(id == paused.id)
        #expect(try await client.transfer(id).errorCode == nil)
        fixture.expectUploaded(try await client.run(id), bytes)
    }

    @Test func `a pause by the user outlasts a new token`() async throws {
        let paused = try await pausedUpload()
        let client = try await fixture.client { $0.token = "new" }
        try await client.pause(paused.id)
        #expect(try await client.tokenChanged() == [])
        #expect(try await client.runQueued().isEmpty)
        let snapshot = try await client.transfer(paused.id)
        #expect(snapshot.state == .paused && snapshot.pauseReason == .user)
    }

    @Test func `a waiting upload can be canceled`() async throws {
        let paused = try await pausedUpload()
        let client = try await fixture.client { $0.token = "new" }
        try await client.cancel(paused.id)
        #expect(try await client.transfer(paused.id).state == .canceled)
        #expect(fixture.sessions.map(\.state) == [.canceled])
    }

    @Test func `a download whose token is refused is paused and goes on`() async throws {
        let file = fixture.addFile(bytes)
        refuse("secret") { $0.fields[.range]?.hasPrefix("bytes=131072") == true }
        let first = try await fixture.client { $0.connections = 1 }
        let id = try await first.enqueueDownload(.file(file), to: fixture.path("copy"))
        let paused = try await first.run(id)
        try await first.close()
        #expect(paused.pauseReason == .signInNeeded)
        #expect(paused.bytesTransferred == 2 * 64 << 10)
        let second = try await fixture.client { $0.token = "new" }
        #expect(try await second.run(id).state == .completed)
        #expect(fixture.read("copy") == bytes)
    }

    @Test func `requests with an expired token share one question for the next`() async throws {
        let asked = Mutex(0)
        refuse("token-1") { $0.method == "PUT" }
        let client = try await fixture.client {
            $0.token = nil
            $0.getToken = {
                let number = asked.withLock { count in
                    count += 1
                    return count
                }
                return "token-\(number)"
            }
        }
        #expect(asked.withLock { $0 } == 0)
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        fixture.expectUploaded(try await client.run(id), bytes)
        #expect(asked.withLock { $0 } == 2)
        #expect(tokens("/finalize") == ["Bearer token-2"])
    }

    @Test func `a token that is refused twice pauses the transfer after one question`()
        async throws
    {
        let asked = Mutex(0)
        refuse("secret")
        refuse("next")
        let client = try await fixture.client {
            $0.getToken = {
                asked.withLock { $0 += 1 }
                return "next"
            }
        }
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        let paused = try await client.run(id)
        #expect(paused.pauseReason == .signInNeeded)
        #expect(asked.withLock { $0 } == 1)
        #expect(tokens("/uploads") == ["Bearer secret", "Bearer next"])
        fixture.server.state.withLock { $0.faults = [] }
        #expect(try await client.tokenChanged() == [id])
        #expect(try await client.transfer(id).state == .queued)
        fixture.expectUploaded(try await client.run(id), bytes)
        #expect(asked.withLock { $0 } == 2)
    }

    @Test func `a closure that throws pauses the transfer, and keeps its own text`() async throws {
        struct Broken: Error { let secret = "hush" }
        let errors: [(any Error, String?)] = [
            (Broken(), nil),
            (
                TransferError(
                    .usage, operation: "ask", explanation: "The agent is locked."),
                "The agent is locked."
            ),
        ]
        for (index, (error, text)) in errors.enumerated() {
            let client = try await fixture.client {
                $0.token = nil
                $0.getToken = { throw error }
            }
            let path = try fixture.write("source-\(index).bin", bytes)
            let paused = try await client.run(try await client.enqueueUpload(path: path))
            #expect(paused.pauseReason == .signInNeeded)
            #expect(!paused.message.contains("hush"))
            if let text { #expect(paused.message.contains(text)) }
            try await client.close()
        }
        #expect(fixture.seen("POST", "/").isEmpty)
    }

    @Test(arguments: ["", "two words", "line\nbreak", "schlüssel"])
    func `a text that is no token is never sent`(text: String) async throws {
        let client = try await fixture.client {
            $0.token = nil
            $0.getToken = { text }
        }
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        #expect(try await client.run(id).pauseReason == .signInNeeded)
        #expect(fixture.seen("POST", "/").isEmpty)
    }

    @Test func `a run that waits for a token can be stopped`() async throws {
        let gate = Gate()
        let client = try await fixture.client {
            $0.token = nil
            $0.getToken = {
                // Deaf to its cancellation.
                await gate.wait()
                return "late"
            }
        }
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        run.cancel()
        #expect(try await run.value.pauseReason == .shutdown)
        gate.open()
    }

    @Test func `a canceled request leaves the question to the others`() async throws {
        let gate = Gate()
        let source = TokenSource(first: nil) {
            await gate.waitOrCancellation()
            try Task.checkCancellation()
            return "token"
        }
        let first = Task { try await source.current() }
        await gate.waitForArrival()
        let second = Task { try await source.current() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.open()
        #expect(try await second.value == "token")
    }

    @Test func `a question is canceled with the last request that waits for it`() async throws {
        let gate = Gate()
        let isCanceled = Mutex(false)
        let source = TokenSource(first: nil) {
            await gate.waitOrCancellation()
            isCanceled.withLock { $0 = Task.isCancelled }
            return "token"
        }
        let request = Task { try await source.current() }
        await gate.waitForArrival()
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
        try await eventually("the question is canceled") { isCanceled.withLock { $0 } }
        gate.open()
        #expect(try await source.current() == "token")
    }
}
