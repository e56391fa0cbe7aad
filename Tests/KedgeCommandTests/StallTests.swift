import KedgeModel
import KedgeTesting
import Testing

/// Links whose other end falls silent. They have a suite of their own, because each stall lasts for
/// the client's whole timeout.
@Suite(.timeLimit(.minutes(2)))
struct StallTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `a stalled upload continues over another connection`() async throws {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .up, stallsAfter: 2 << 20, stallCount: 2))
        let finished = try await fixture.run(
            ["upload", source.path, "--server", proxy.url, "--json"])
        try finished.expectCompleted(source)
        #expect(proxy.counts.stallCount == 2)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
    }

    @Test func `a stalled download continues over another connection`() async throws {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .down, stallsAfter: 2 << 20, stallCount: 2))
        let finished = try await fixture.run(
            ["download", id, "-o", fixture.path("copy"), "--server", proxy.url, "--json"])
        try finished.expectCompleted(source)
        #expect(try SampleFile.digest(of: fixture.path("copy")) == source.digest)
        #expect(proxy.counts.stallCount == 2)
        #expect(proxy.counts.downByteCount < source.byteCount * 13 / 10)
    }
}
