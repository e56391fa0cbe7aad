import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// R157: files that arrived before a failure are not sent again.
///
/// Serialized, because a request under way must end within the half second that a test waits.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct NothingTwiceTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func samples() throws -> [SampleFile] {
        try (1...6).map {
            try fixture.sample("\($0).bin", mebibytes: 5, plus: $0, seed: UInt64($0))
        }
    }

    private func command(_ samples: [SampleFile], _ url: String) -> [String] {
        ["upload", "--parallel", "1", "--server", url, "--json"] + samples.map(\.path)
    }

    /// Counts the finalized sessions: a client that was killed before it read the answer may
    /// finalize again.
    private func finalizedCount(_ server: Server) -> Int {
        let finalized = server.requests.filter {
            $0.route.hasSuffix("/finalize") && $0.status == 200
        }
        return Set(finalized.map(\.sessionID)).count
    }

    private func expectEverythingOnce(
        _ server: Server, _ finished: Finished, _ samples: [SampleFile]
    ) {
        let requests = server.requests
        #expect(requests.sessionIDs.count == samples.count)
        #expect(finalizedCount(server) == samples.count)
        for session in requests.sessionIDs {
            let created = requests.filter { $0.sessionID == session }.created
            #expect(created.count == 2 && created.allSatisfy { $0.value == 1 })
        }
        // Results that cannot be read are nil and fail the comparison.
        #expect((try? finished.results.compactMap(\.fileHashSha256)) == samples.map(\.digest.hex))
    }

    @Test func `files that were uploaded before a kill are not sent again`() async throws {
        let samples = try samples()
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 6 << 20))
        let client = try fixture.start(command(samples, proxy.url))
        try await eventually("the fourth file is under way") { finalizedCount(server) >= 3 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        proxy.faults = Faults()
        // A request under way may still complete.
        try await Task.sleep(for: .milliseconds(500))
        let done = finalizedCount(server)
        let before = proxy.counts.upByteCount
        let finished = try await fixture.run(command(samples, proxy.url))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        expectEverythingOnce(server, finished, samples)
        let rest = samples.dropFirst(done).reduce(0) { $0 + $1.byteCount }
        #expect(proxy.counts.upByteCount - before < rest + 64 << 10)
    }

    @Test func `only the failed file of several is sent by the next run`() async throws {
        let samples = try samples()
        let hidden = fixture.path("hidden")
        try FileManager.default.moveItem(atPath: samples[3].path, toPath: hidden)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port)
        let failed = try await fixture.run(command(samples, proxy.url))
        #expect(failed.termination == .exited(ExitStatus.someFailed))
        #expect(finalizedCount(server) == 5)
        try FileManager.default.moveItem(atPath: hidden, toPath: samples[3].path)
        let before = proxy.counts.upByteCount
        let finished = try await fixture.run(command(samples, proxy.url))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        expectEverythingOnce(server, finished, samples)
        #expect(proxy.counts.upByteCount - before < samples[3].byteCount + 64 << 10)
    }
}
