import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Control of a transfer by signals and from other processes.
///
/// Serialized, because what must happen within seconds needs the machine for itself.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct ControlTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// An upload that is under way and would take ten seconds more.
    private struct Running {
        let source: SampleFile
        let server: Server
        let proxy: FaultyProxy
        let command: [String]
        let client: ChildProcess
        let transfer: String
    }

    private func startUpload(_ more: String...) async throws -> Running {
        let source = try fixture.sample(mebibytes: 40)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let command =
            ["upload", source.path, "--server", proxy.url, "--chunk-size", "1048576"] + more
        let client = try fixture.start(command)
        try await eventually("some chunks are there") { server.requests.created.count >= 3 }
        let transfer = try #require(try await fixture.transfers().first?.transferId)
        return Running(
            source: source, server: server, proxy: proxy, command: command, client: client,
            transfer: transfer)
    }

    private func expectNothingTwice(_ running: Running) {
        let requests = running.server.requests
        #expect(requests.sessionIDs.count == 1)
        #expect(requests.created.filter { $0.value > 1 } == [:])
        #expect(running.proxy.counts.upByteCount < running.source.byteCount * 13 / 10)
    }

    // R1, R106: Ctrl-C saves the transfer and prints how to resume it.
    @Test(arguments: [(SIGINT, ExitStatus.interrupted), (SIGTERM, ExitStatus.terminated)])
    func `a signal saves the transfer, and the same command resumes it`(
        signal: Int32, status: Int32
    ) async throws {
        let running = try await startUpload()
        running.client.signal(signal)
        let ended = try await fixture.finish(running.client, within: .seconds(10))
        #expect(ended.termination == .exited(status))
        #expect(ended.errors.contains(running.command.joined(separator: " ")))
        #expect(ended.output == "")
        let saved = try #require(try await fixture.transfers().first)
        #expect(saved.state == "paused")
        #expect(saved.pauseReason == "shutdown")
        #expect((saved.bytesTransferred ?? 0) >= 3 << 20)
        running.proxy.faults = Faults()
        let finished = try await fixture.run(running.command + ["--json"])
        try finished.expectCompleted(running.source)
        #expect(try finished.result.transferId == running.transfer)
        expectNothingTwice(running)
    }

    // R106: no record claims that bytes move when none do.
    @Test func `a killed upload is recorded as queued, not as uploading`() async throws {
        let running = try await startUpload()
        running.client.signal(SIGKILL)
        _ = try await running.client.wait()
        #expect(try await fixture.transfers().map(\.state) == ["queued"])
        let show = try await fixture.run(["transfers", "show", running.transfer])
        #expect(!show.output.contains("uploading"), "\(show.output)")
        #expect(try await fixture.diagnose(running.transfer).state == "queued")
        running.proxy.faults = Faults()
        let finished = try await fixture.run(running.command + ["--json"])
        try finished.expectCompleted(running.source)
        expectNothingTwice(running)
    }

    // R106: the second signal does not wait for work that the first one began.
    @Test func `a second signal ends the client at once and leaves a correct state`() async throws {
        let running = try await startUpload()
        // A stopped process gets both signals at once.
        running.client.signal(SIGSTOP)
        running.client.signal(SIGINT)
        running.client.signal(SIGTERM)
        running.client.signal(SIGCONT)
        let ended = try await fixture.finish(running.client, within: .seconds(10))
        #expect([.exited(130), .exited(143)].contains(ended.termination))
        let saved = try #require(try await fixture.transfers().first)
        #expect(["queued", "paused"].contains(saved.state), "\(saved)")
        running.proxy.faults = Faults()
        let finished = try await fixture.run(running.command + ["--json"])
        try finished.expectCompleted(running.source)
        #expect(try finished.result.transferId == running.transfer)
        expectNothingTwice(running)
    }

    // R106, R109.
    @Test func `another process can pause and resume a transfer`() async throws {
        let running = try await startUpload()
        #expect(
            try await fixture.run(["transfers", "pause", running.transfer]).termination
                == .exited(0))
        let ended = try await fixture.finish(running.client, within: .seconds(5))
        #expect(ended.termination != .exited(0))
        let paused = try #require(try await fixture.transfers().first)
        #expect(paused.state == "paused")
        #expect(paused.pauseReason == "user")
        running.proxy.faults = Faults()
        let finished = try await fixture.run([
            "transfers", "resume", running.transfer, "--server", running.proxy.url, "--json",
        ])
        try finished.expectCompleted(running.source)
        #expect(try finished.result.transferId == running.transfer)
        expectNothingTwice(running)
    }

    // The record has the server, so the command that resumes it need not name one.
    @Test func `a transfer resumes at its own server without a server on the command line`()
        async throws
    {
        let running = try await startUpload()
        running.client.signal(SIGINT)
        _ = try await running.client.wait(within: .seconds(10))
        running.proxy.faults = Faults()
        let finished = try await fixture.run(
            ["transfers", "resume", running.transfer, "--json"], within: .seconds(20))
        try finished.expectCompleted(running.source)
    }

    // R102, R109.
    @Test func `another process can cancel a transfer, and its session is deleted`() async throws {
        let running = try await startUpload("--json")
        let session = try #require(running.server.requests.sessionIDs.first)
        #expect(
            try await fixture.run(["transfers", "cancel", running.transfer]).termination
                == .exited(0)
        )
        let ended = try await fixture.finish(running.client, within: .seconds(5))
        #expect(ended.termination != .exited(0))
        #expect(try ended.result.state == "canceled")
        let deleted = running.server.requests.filter { $0.method == "DELETE" && $0.status == 204 }
        #expect(deleted.map(\.sessionID) == [session])
        // Repeating the command begins a new transfer.
        running.proxy.faults = Faults()
        let finished = try await fixture.run(running.command + ["--json"])
        try finished.expectCompleted(running.source)
        #expect(try finished.result.transferId != running.transfer)
    }

    // R109, R110.
    @Test func `a failed transfer can be retried from scratch`() async throws {
        let running = try await startUpload("--json")
        let elsewhere = fixture.path("elsewhere")
        try FileManager.default.moveItem(atPath: running.source.path, toPath: elsewhere)
        running.proxy.faults = Faults()
        let failed = try await fixture.finish(running.client)
        #expect(try failed.result.errorCode == "FILE_MISSING")
        try FileManager.default.moveItem(atPath: elsewhere, toPath: running.source.path)
        let finished = try await fixture.run([
            "transfers", "retry", running.transfer, "--from-scratch", "--server",
            running.proxy.url, "--json",
        ])
        try finished.expectCompleted(running.source)
        #expect(try finished.result.transferId == running.transfer)
        #expect(running.server.requests.sessionIDs.count == 2)
        try await fixture.expectServed(
            running.source, id: finished.result.remoteFileId, at: running.server.url)
    }

    @Test func `two runs of the same command at once send everything once`() async throws {
        let running = try await startUpload("--json")
        let second = try fixture.start(running.command)
        running.proxy.faults = Faults()
        let (one, other) = (
            try await fixture.finish(running.client), try await fixture.finish(second)
        )
        try one.expectCompleted(running.source)
        try other.expectCompleted(running.source)
        #expect(try one.result.remoteFileId == other.result.remoteFileId)
        #expect(try other.result.transferId == running.transfer)
        expectNothingTwice(running)
    }

    @Test func `a waiting process takes over from one that was killed`() async throws {
        let running = try await startUpload("--json")
        let second = try fixture.start(running.command)
        try await eventually("the second one watches") { second.output != "" }
        running.client.signal(SIGKILL)
        running.proxy.faults = Faults()
        try await fixture.finish(second).expectCompleted(running.source)
        #expect(running.server.requests.created.filter { $0.value > 1 } == [:])
    }
}
