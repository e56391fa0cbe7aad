import KedgeModel
import Testing

/// Links that lose their other end without a word. Apart from the others, because waiting for a stall
/// takes the client's whole patience with one.
@Suite(.timeLimit(.minutes(2)))
struct StallTests {
    private let scene: Scene

    init() throws { scene = try Scene() }

    @Test func `an upload that stalls goes on over another connection`() async throws {
        let source = try scene.sample(mebibytes: 24)
        let server = try await scene.serve()
        let proxy = try scene.proxy(
            to: server.port, Faults(direction: .up, stallsAfter: 2 << 20, stallCount: 2))
        let finished = try await scene.run(
            ["upload", source.path, "--server", proxy.url, "--json"])
        try finished.expectCompleted(source)
        #expect(proxy.counts.stallCount == 2)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
    }

    @Test func `a download that stalls goes on over another connection`() async throws {
        let source = try scene.sample(mebibytes: 24)
        let server = try await scene.serve()
        let id = try await scene.upload(source, to: server.url)
        let proxy = try scene.proxy(
            to: server.port, Faults(direction: .down, stallsAfter: 2 << 20, stallCount: 2))
        let finished = try await scene.run(
            ["download", id, "-o", scene.path("copy"), "--server", proxy.url, "--json"])
        try finished.expectCompleted(source)
        #expect(try Sample.digest(of: scene.path("copy")) == source.digest)
        #expect(proxy.counts.stallCount == 2)
        #expect(proxy.counts.downByteCount < source.byteCount * 13 / 10)
    }
}
