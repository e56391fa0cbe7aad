import HTTPTypes
import KedgeLocks
import KedgeModel
import Testing

@testable import KedgeClient

/// Servers that have not answered as a Kedge yet, and those that have.
@Suite(.timeLimit(.minutes(1)))
struct FirstContactTests {
    /// Answers that no Kedge gives.
    enum Foreign: String, CaseIterable {
        case page, notFound, notImplemented, redirect

        var reply: Reply {
            switch self {
            case .page:
                Reply(
                    status: 200, fields: [.contentType: "text/html"], body: Array("<html>".utf8))
            case .notFound: Reply(status: 404)
            case .notImplemented: Reply(status: 501)
            case .redirect:
                Reply(status: 302, fields: [.location: "http://login.test/?next=secret"])
            }
        }

        var code: ErrorCode { self == .redirect ? .redirected : .notKedge }
    }

    private let scene: Scene
    private let bytes = Scene.bytes(200_000)
    private let isCreation: @Sendable (FakeServer.Seen) -> Bool = { $0.path == "/uploads/sessions" }

    init() throws { scene = try Scene() }

    private func upload(
        _ name: String = "source.bin", _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferSnapshot {
        let client = try await scene.client(change)
        // Written once: the same command again is about the same file.
        if scene.read(name) == nil { try scene.write(name, bytes) }
        let snapshot = try await client.run(
            try await client.enqueueUpload(path: scene.path(name)))
        try await client.close()
        return snapshot
    }

    private func creations() -> Int {
        scene.seen("POST", "/uploads/sessions").filter(isCreation).count
    }

    @Test(arguments: Foreign.allCases)
    func `a first answer that is no Kedge's ends the upload at once`(foreign: Foreign) async throws
    {
        scene.plan(.answer(foreign.reply), when: isCreation)
        let path = try scene.write("source.bin", bytes)
        let client = try await scene.client()
        let id = try await client.enqueueUpload(path: path)
        let failed = try await client.run(id)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == foreign.code)
        #expect(creations() == 1)
        #expect(!failed.message.contains("secret"))
        // The same command goes on with the same record.
        #expect(try await client.enqueueUpload(path: path) == id)
        scene.expectUploaded(try await client.run(id), bytes)
    }

    // More often than a failing transfer is tried: it waits, and its session and bytes stay.
    @Test(arguments: Foreign.allCases)
    func `another answer than a known server's is waited out`(foreign: Foreign) async throws {
        scene.expectUploaded(try await upload("first.bin"), bytes)
        // In another process, for another file.
        scene.plan(.answer(foreign.reply), count: 20, when: isCreation)
        scene.plan(.answer(foreign.reply), count: 40) { $0.method == "PUT" }
        scene.plan(.answer(foreign.reply), count: 20) { $0.path.contains("/finalize") }
        scene.expectUploaded(try await upload("second.bin"), bytes)
        #expect(creations() == 22)
        #expect(scene.repeatedByteCount == 0)
    }

    @Test(arguments: Foreign.allCases)
    func `another answer than a known server's takes nothing from a download`(
        foreign: Foreign
    ) async throws {
        scene.expectUploaded(try await upload("first.bin"), bytes)
        let id = scene.addFile(bytes)
        let whole = "bytes=65536-131071"
        scene.plan(.rewrite { $0.cutsAfter = 40_000 }) { $0.fields[.range] == whole }
        // From then on there is nothing but the other answer, for a while.
        let isCut = Mutex(false)
        scene.plan(.answer(foreign.reply), count: 60) { seen in
            guard seen.path.contains("/files/") else { return false }
            return isCut.withLock { isCut in
                if seen.fields[.range] == "bytes=105536-131071" { isCut = true }
                return isCut
            }
        }
        scene.plan(.answer(Foreign.page.reply), count: 1000) { $0.url.contains("login.test") }
        let client = try await scene.client { $0.connections = 1 }
        let done = try await client.run(
            try await client.enqueueDownload(.file(id), to: scene.path("copy.bin")))
        #expect(done.state == .completed, "\(done.message)")
        #expect(scene.read("copy.bin") == bytes)
        #expect(scene.seen("GET", "/files/").filter { $0.fields[.range] == whole }.count == 1)
    }

    @Test func `a server that moved for good is not waited for for ever`() async throws {
        scene.expectUploaded(try await upload("first.bin"), bytes)
        let moved = Reply(
            status: 308, fields: [.location: "https://kedge.test/uploads/sessions"])
        scene.plan(.answer(moved), count: 1000, when: isCreation)
        let failed = try await upload("second.bin")
        #expect(failed.errorCode == .redirected)
        #expect(failed.message.contains("its address is https://kedge.test."))
    }

    @Test(arguments: [429, 500, 503])
    func `patience before the first answer holds for servers that cannot serve`(
        status: Int
    ) async throws {
        scene.plan(.answer(Reply(status: status)), count: 1_000_000)
        let waiting = try await upload { $0.firstAnswerPatience = .milliseconds(100) }
        #expect(waiting.state == .queued)
        #expect(waiting.failedAttempt?.nextAttemptAt == nil)
        #expect(waiting.message.contains("gave up") && !waiting.message.hasPrefix("Waiting"))
    }

    @Test func `a password in the address is not kept with the servers that are known`()
        async throws
    {
        scene.expectUploaded(
            try await upload { $0.serverURL = "http://us:pa55@kedge.test" }, bytes)
        let client = try await scene.client()
        #expect(try await client.store.isKnownServer("http://us:other@kedge.test"))
        #expect(try await client.store.isKnownServer("http://kedge.test"))
    }

    @Test func `a refusal in a Kedge's words makes it known`() async throws {
        scene.plan(.answer(Reply(problem: .busy)), when: isCreation)
        scene.plan(.answer(Foreign.page.reply), count: 2, when: isCreation)
        scene.expectUploaded(try await upload(), bytes)
    }

    @Test(arguments: [502, 503, 504, 500, 429])
    func `a proxy whose server is away is waited for at the first contact`(
        status: Int
    ) async throws {
        scene.plan(.answer(Reply(status: status)), count: 5, when: isCreation)
        scene.expectUploaded(try await upload(), bytes)
    }

    @Test(
        arguments: [
            (ConnectionCause.nameNotFound, ErrorCode.nameNotFound), (.tlsRefused, .tlsRefused),
        ])
    func `a name that does not exist, and a refusal of TLS, are no weather at first`(
        cause: ConnectionCause, code: ErrorCode
    ) async throws {
        scene.plan(.unreachable(cause))
        let failed = try await upload()
        #expect(failed.errorCode == code)
        #expect(failed.failedAttempt?.cause == cause)
        scene.expectUploaded(try await upload(), bytes)
        scene.plan(.unreachable(cause), count: 5)
        scene.expectUploaded(try await upload("other.bin"), bytes)
    }

    @Test(arguments: [
        ConnectionCause.nameUnresolved, .refused, .unreachable, .timedOut, .proxyUnresolved,
    ])
    func `what passes by itself is waited for also at first`(cause: ConnectionCause) async throws {
        scene.plan(.unreachable(cause), count: 30)
        scene.expectUploaded(try await upload(), bytes)
    }

    @Test func `patience before the first answer is its own`() async throws {
        scene.plan(.unreachable(.refused), count: 1_000_000)
        let waiting = try await upload { $0.firstAnswerPatience = .milliseconds(100) }
        #expect(waiting.state == .queued)
        #expect(waiting.errorCode == .offline)
        let attempt = try #require(waiting.failedAttempt)
        #expect(attempt.cause == .refused)
        #expect(attempt.host == "kedge.test")
        #expect(attempt.port == 80)
        #expect(attempt.attempt > 1)
        #expect(attempt.nextAttemptAt == nil)
        scene.server.state.withLock { $0.faults = [] }
        scene.expectUploaded(try await upload(), bytes)
        // Known by now: the outage takes longer, and is waited for.
        scene.plan(.unreachable(.refused), count: 50)
        scene.expectUploaded(
            try await upload("other.bin") { $0.firstAnswerPatience = .zero }, bytes)
    }

    @Test(arguments: [0, 1, 4])
    func `retries end an outage, and the same command goes on`(retries: Int) async throws {
        scene.plan(.unreachable(.refused), count: 1000, when: isCreation)
        let failed = try await upload { $0.retry.maxRetries = retries }
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .offline)
        #expect(failed.failedAttempt?.attempt == retries + 1)
        #expect(creations() == retries + 1)
        scene.server.state.withLock { $0.faults = [] }
        let done = try await upload()
        #expect(done.id == failed.id)
        #expect(done.failedAttempt == nil)
        scene.expectUploaded(done, bytes)
    }

    @Test func `while it waits the record says why, where and how often`() async throws {
        let gate = Gate()
        scene.plan(.unreachable(.timedOut), count: 4)
        scene.plan(.wait(gate))
        let client = try await scene.client()
        let id = try await client.enqueueUpload(path: try scene.write("source.bin", bytes))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let snapshot = try await client.transfer(id)
        #expect(snapshot.state == .queued)
        #expect(snapshot.failedAttempt?.attempt == 4)
        #expect(snapshot.failedAttempt?.nextAttemptAt != nil)
        #expect(snapshot.message.contains("kedge.test:80"))
        let diagnosis = try await client.diagnose(id)
        #expect(diagnosis.cause == .timedOut)
        #expect(diagnosis.host == "kedge.test")
        gate.open()
        scene.expectUploaded(try await run.value, bytes)
    }

    @Test(arguments: [401, 403])
    func `a refusal tells whether a token was sent`(status: Int) async throws {
        scene.plan(.answer(Reply(status: status)), count: 2, when: isCreation)
        let with = try await upload()
        let without = try await upload { $0.token = nil }
        #expect(with.state == .failed && without.state == .failed)
        #expect(with.message != without.message)
    }
}
