import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Repeated kills of both sides, while the link between them cuts and damages messages.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct KillStormTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private static let chunkByteCount = 512 << 10

    /// A link that dies within each chunk and flips bits.
    private func link(_ direction: Faults.Direction, _ cut: Faults.Cut) -> Faults {
        Faults(
            direction: direction, cutsAfter: 400 << 10, cut: cut,
            flipsEvery: 5 << 20, bytesPerSecond: 24 << 20)
    }

    // R1, R6, R13, R16, R77, R134, R137.
    @Test(arguments: Seeds.all)
    func `an upload completes once despite kills of both sides over a bad link`(seed: UInt64)
        async throws
    {
        var generator = SplitMix64(seed: seed)
        let source = try fixture.sample(mebibytes: Torture.mebibytes, plus: 1, seed: seed)
        let cut = Faults.Cut.allCases.randomElement(using: &generator) ?? .finish
        var servers = [try await fixture.serve()]
        let proxy = try fixture.proxy(to: servers[0].port, link(.up, cut))
        let command = [
            "upload", source.path, "--server", proxy.url, "--json", "--chunk-size",
            "\(Self.chunkByteCount)",
        ]
        var client = try fixture.start(command)
        for kill in 0..<Torture.killCount {
            let target = source.byteCount / Self.chunkByteCount * kill * 2 / (Torture.killCount * 3)
            try await eventually("\(target) chunks are there", within: Torture.limit) {
                servers.requests.created.count > target
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...40, using: &generator)))
            if Bool.random(using: &generator) {
                client.signal(SIGKILL)
                // On a busy machine the kill may come after the end.
                let end = try await client.wait()
                #expect([.signaled(SIGKILL), .exited(0)].contains(end), "\(client.output)")
                client = try fixture.start(command)
            } else {
                let acknowledged = Set(servers.requests.created.keys)
                servers.append(try await replace(servers[servers.count - 1]))
                proxy.upstreamPort = servers[servers.count - 1].port
                try await expectKept(acknowledged, servers)
            }
        }
        let finished = try await fixture.finish(client, within: Torture.limit)
        try finished.expectCompleted(source)
        #expect(servers.requests.sessionIDs.count == 1)
        try servers.expectTakenOnce(source)
        #expect(proxy.counts.cutCount > 0 && proxy.counts.flipCount > 0)
        try await fixture.expectServed(
            source, id: finished.result.remoteFileId, at: servers[servers.count - 1].url)
        Torture.reportSurvived(kills: Torture.killCount)
    }

    private func replace(_ server: Server) async throws -> Server {
        server.process.signal(SIGKILL)
        #expect(try await server.process.wait() == .signaled(SIGKILL))
        return try await fixture.serve()
    }

    private func expectKept(_ acknowledged: Set<Int>, _ servers: [Server]) async throws {
        guard let session = servers.requests.sessionIDs.first else { return }
        let status = try await fixture.session(session, at: servers[servers.count - 1].url)
        #expect(acknowledged.subtracting(status.receivedChunks) == [], "lost at a kill")
    }

    // R1, R16, R19, R86, R108, R135, R137.
    @Test(arguments: Seeds.all)
    func `a download completes intact despite kills of both sides over a bad link`(seed: UInt64)
        async throws
    {
        var generator = SplitMix64(seed: seed)
        let source = try fixture.sample(mebibytes: Torture.mebibytes, plus: 1, seed: seed)
        let cut = Faults.Cut.allCases.randomElement(using: &generator) ?? .finish
        var server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(to: server.port, link(.down, cut))
        let copy = fixture.path("copy.bin")
        let watcher = DestinationWatcher(copy, digest: source.digest)
        let command = ["download", id, "-o", copy, "--server", proxy.url, "--json"]
        var client = try fixture.start(command)
        for kill in 1...Torture.killCount {
            let target = source.byteCount * kill * 2 / (Torture.killCount * 3)
            try await eventually("\(target) bytes passed", within: Torture.limit) {
                proxy.counts.downByteCount >= target
            }
            if Bool.random(using: &generator) {
                client.signal(SIGKILL)
                let end = try await client.wait()
                #expect([.signaled(SIGKILL), .exited(0)].contains(end), "\(client.output)")
                client = try fixture.start(command)
            } else {
                server = try await replace(server)
                proxy.upstreamPort = server.port
            }
            #expect(!FileManager.default.fileExists(atPath: copy))
        }
        let finished = try await fixture.finish(client, within: Torture.limit)
        try finished.expectCompleted(source)
        #expect(try await watcher.stop().wrongSights == [])
        #expect(proxy.counts.cutCount > 0 && proxy.counts.flipCount > 0)
        #expect(fixture.temporaryFile(in: fixture.directory) == nil)
        Torture.reportSurvived(kills: Torture.killCount)
    }
}
