import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Two clients with separate records that upload to one session; one of them stalls.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TakeoverTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    // R1, R62, R76: the second client gets the chunks that the first one has half sent.
    @Test func `a stalled client does not delay another one, and completes when it continues`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve()
        // Slow enough that the upload still runs when a busy machine stops the client.
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 2 << 20))
        // More than the buffers between two sockets hold, so that the stalled chunks are half sent.
        let command = [
            "upload", source.path, "--server", proxy.url, "--json", "--chunk-size", "8388608",
        ]
        let first = try fixture.start(command)
        try await eventually("chunks are in flight") { proxy.counts.upByteCount > 2 << 20 }
        first.signal(SIGKILL)
        _ = try await first.wait()
        // Two copies of the records, as after copying a home directory.
        try FileManager.default.copyItem(
            atPath: fixture.path("state"), toPath: fixture.path("copied"))
        let begun = chunkRequests(proxy)
        let standing = try fixture.start(command)
        try await eventually("its chunks are in flight") { chunkRequests(proxy) >= begun + 3 }
        standing.signal(SIGSTOP)
        proxy.faults = Faults()
        let finished = try await fixture.run(
            command, environment: ["XDG_STATE_HOME": fixture.path("copied")], within: .seconds(20))
        try finished.expectCompleted(source)
        try await eventually("it took over", within: .seconds(5)) {
            server.requests.contains { $0.errorCode == "WRITER_REPLACED" }
        }
        #expect(standing.isRunning)
        standing.signal(SIGCONT)
        let other = try await fixture.finish(standing, within: .seconds(30))
        try other.expectCompleted(source)
        #expect(try other.result.remoteFileId == finished.result.remoteFileId)
        #expect(server.requests.sessionIDs.count == 1)
        try [server].expectTakenOnce(source)
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: server.url)
    }

    private func chunkRequests(_ proxy: FaultyProxy) -> Int {
        proxy.counts.requests.count { $0.firstLine.hasPrefix("PUT") }
    }
}
