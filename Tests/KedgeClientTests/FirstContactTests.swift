import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Servers that have not yet answered as a Kedge server, and servers that have.
@Suite(.timeLimit(.minutes(1)))
struct FirstContactTests {
    /// Answers that no Kedge server gives.
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

    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(200_000)
    private let isCreation: @Sendable (FakeServer.Seen) -> Bool = {
        $0.route == "/uploads/sessions"
    }

    init() throws { fixture = try TransferEnvironment() }

    private func upload(
        _ name: String = "source.bin", _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferSnapshot {
        let client = try await fixture.client(change)
        // The file is written once, so that a repeated command is about the same file.
        if fixture.read(name) == nil { try fixture.write(name, bytes) }
        let snapshot = try await client.run(
            try await client.enqueueUpload(path: fixture.path(name)))
        try await client.close()
        return snapshot
    }

    private func creations() -> Int {
        fixture.seen("POST", "/uploads/sessions").filter(isCreation).count
    }

    @Test(arguments: Foreign.allCases)
    func `a first answer that is not Kedge's ends the upload at once`(foreign: Foreign) async throws
    {
        fixture.plan(.answer(foreign.reply), when: isCreation)
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        let failed = try await client.run(id)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == foreign.code)
        #expect(creations() == 1)
        #expect(!failed.message.contains("secret"))
        // Repeating the command continues with the same record.
        #expect(try await client.enqueueUpload(path: path) == id)
        fixture.expectUploaded(try await client.run(id), bytes)
    }

    // The answers outnumber the attempts of a failing transfer: it waits and keeps session and
    // bytes.
    @Test(arguments: Foreign.allCases)
    func `a foreign answer in place of a known server's is waited out`(foreign: Foreign)
        async throws
    {
        fixture.expectUploaded(try await upload("first.bin"), bytes)
        // Another process uploads another file.
        fixture.plan(.answer(foreign.reply), count: 20, when: isCreation)
        fixture.plan(.answer(foreign.reply), count: 40) { $0.method == "PUT" }
        fixture.plan(.answer(foreign.reply), count: 20) { $0.path.contains("/finalize") }
        fixture.expectUploaded(try await upload("second.bin"), bytes)
        #expect(creations() == 22)
        #expect(fixture.repeatedByteCount == 0)
    }

    @Test(arguments: Foreign.allCases)
    func `a foreign answer in place of a known server's costs a download no bytes`(
        foreign: Foreign
    ) async throws {
        fixture.expectUploaded(try await upload("first.bin"), bytes)
        let id = fixture.addFile(bytes)
        let whole = "bytes=65536-131071"
        fixture.plan(.rewrite { $0.cutsAfter = 40_000 }) { $0.fields[.range] == whole }
        // From then on every request gets the foreign answer, for a while.
        let isCut = Mutex(false)
        fixture.plan(.answer(foreign.reply), count: 60) { seen in
            guard seen.path.contains("/files/") else { return false }
            return isCut.withLock { isCut in
                if seen.fields[.range] == "bytes=105536-131071" { isCut = true }
                return isCut
            }
        }
        fixture.plan(.answer(Foreign.page.reply), count: 1000) { $0.url.contains("login.test") }
        let client = try await fixture.client { $0.connections = 1 }
        let done = try await client.run(
            try await client.enqueueDownload(.file(id), to: fixture.path("copy.bin")))
        #expect(done.state == .completed, "\(done.message)")
        #expect(fixture.read("copy.bin") == bytes)
        #expect(fixture.seen("GET", "/files/").filter { $0.fields[.range] == whole }.count == 1)
    }

    @Test func `a known server that moved permanently is not waited for forever`() async throws {
        fixture.expectUploaded(try await upload("first.bin"), bytes)
        let moved = Reply(
            status: 308, fields: [.location: "https://kedge.test/uploads/sessions"])
        fixture.plan(.answer(moved), count: 1000, when: isCreation)
        let failed = try await upload("second.bin")
        #expect(failed.errorCode == .redirected)
        #expect(failed.message.contains("its address is https://kedge.test."))
    }

    @Test(arguments: [429, 500, 503])
    func `the timeout before the first answer applies to servers that cannot serve`(
        status: Int
    ) async throws {
        fixture.plan(.answer(Reply(status: status)), count: 1_000_000)
        let waiting = try await upload { $0.firstAnswerTimeout = .milliseconds(100) }
        #expect(waiting.state == .queued)
        #expect(waiting.failedAttempt?.nextAttemptAt == nil)
        #expect(waiting.message.contains("gave up") && !waiting.message.hasPrefix("Waiting"))
    }

    @Test func `a server stays known under another password in its address`()
        async throws
    {
        fixture.expectUploaded(
            try await upload { $0.serverURL = "http://us:pa55@kedge.test" }, bytes)
        let client = try await fixture.client()
        #expect(try await client.store.isKnownServer("http://us:other@kedge.test"))
        #expect(try await client.store.isKnownServer("http://kedge.test"))
    }

    @Test func `a refusal as a Kedge problem document makes the server known`() async throws {
        fixture.plan(.answer(Reply(problem: .busy)), when: isCreation)
        fixture.plan(.answer(Foreign.page.reply), count: 2, when: isCreation)
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test(arguments: [502, 503, 504, 500, 429])
    func `a proxy whose server is away is waited for at the first contact`(
        status: Int
    ) async throws {
        fixture.plan(.answer(Reply(status: status)), count: 5, when: isCreation)
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test(
        arguments: [
            (ConnectionCause.nameNotFound, ErrorCode.nameNotFound), (.tlsRefused, .tlsRefused),
        ])
    func `an unknown host name or a refusal of TLS ends an upload only at first contact`(
        cause: ConnectionCause, code: ErrorCode
    ) async throws {
        fixture.plan(.unreachable(cause))
        let failed = try await upload()
        #expect(failed.errorCode == code)
        #expect(failed.failedAttempt?.cause == cause)
        fixture.expectUploaded(try await upload(), bytes)
        fixture.plan(.unreachable(cause), count: 5)
        fixture.expectUploaded(try await upload("other.bin"), bytes)
    }

    @Test(arguments: [
        ConnectionCause.nameUnresolved, .refused, .unreachable, .timedOut, .proxyUnresolved,
    ])
    func `a transient connection failure is waited for at first contact too`(cause: ConnectionCause)
        async throws
    {
        fixture.plan(.unreachable(cause), count: 30)
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test func `the timeout before the first answer is separate from the later timeout`()
        async throws
    {
        fixture.plan(.unreachable(.refused), count: 1_000_000)
        let waiting = try await upload { $0.firstAnswerTimeout = .milliseconds(100) }
        #expect(waiting.state == .queued)
        #expect(waiting.errorCode == .offline)
        let attempt = try #require(waiting.failedAttempt)
        #expect(attempt.cause == .refused)
        #expect(attempt.host == "kedge.test")
        #expect(attempt.port == 80)
        #expect(attempt.attempt > 1)
        #expect(attempt.nextAttemptAt == nil)
        fixture.server.state.withLock { $0.faults = [] }
        fixture.expectUploaded(try await upload(), bytes)
        // The server is known by now: the client waits for the end of the longer outage.
        fixture.plan(.unreachable(.refused), count: 50)
        fixture.expectUploaded(
            try await upload("other.bin") { $0.firstAnswerTimeout = .zero }, bytes)
    }

    @Test func `only a first answer must come before the wait for the server ends`() async throws {
        let link = TimedLink(server: fixture.server)
        var configuration = ClientConfiguration(
            serverURL: FakeServer.base, stateDirectory: fixture.path("state"))
        configuration.firstAnswerTimeout = .seconds(5)
        configuration.serverTimeout = .seconds(5)
        let client = try await TransferClient(
            configuration: configuration, transport: link, environment: fixture.environment)
        let path = try fixture.write("source.bin", bytes)
        fixture.expectUploaded(
            try await client.run(try await client.enqueueUpload(path: path)), bytes)
        let limits = link.limits.withLock { $0 }
        let first = try #require(limits.first ?? nil)
        #expect(first > .zero && first <= .seconds(5))
        // Finalizing may take long.
        let last = try #require(limits.last ?? nil)
        #expect(last > .seconds(60))
    }

    @Test(arguments: [0, 1, 4])
    func `an upload that runs out of retries is continued by the same command`(retries: Int)
        async throws
    {
        fixture.plan(.unreachable(.refused), count: 1000, when: isCreation)
        let failed = try await upload { $0.retry.maxRetries = retries }
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .offline)
        #expect(failed.failedAttempt?.attempt == retries + 1)
        #expect(creations() == retries + 1)
        fixture.server.state.withLock { $0.faults = [] }
        let done = try await upload()
        #expect(done.id == failed.id)
        #expect(done.failedAttempt == nil)
        fixture.expectUploaded(done, bytes)
    }

    @Test func `the record of a waiting transfer has cause, host and number of attempts`()
        async throws
    {
        let gate = Gate()
        fixture.plan(.unreachable(.timedOut), count: 4)
        fixture.plan(.wait(gate))
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
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
        fixture.expectUploaded(try await run.value, bytes)
    }

    @Test(arguments: [401, 403])
    func `the message of a refusal depends on whether a token was sent`(status: Int) async throws {
        fixture.plan(.answer(Reply(status: status)), count: 2, when: isCreation)
        let with = try await upload()
        let without = try await upload { $0.token = nil }
        let state: TransferState = status == 401 ? .paused : .failed
        #expect(with.state == state && without.state == state)
        #expect(with.message != without.message)
    }
}

/// A link that notes how long each request waits without a byte.
private final class TimedLink: HTTPTransport {
    let limits = Mutex<[Duration?]>([])
    private let server: FakeServer

    init(server: FakeServer) { self.server = server }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        limits.withLock { $0.append(request.stallTimeout) }
        return try await server.send(request)
    }

    func shutdown() async {}
}
