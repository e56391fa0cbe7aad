import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// The bytes that an end of the client costs on the wire.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct DownloadCostTests {
    private static let maxConnectionCount = 5
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// The server that the file comes from.
    enum Origin: CaseIterable {
        /// A Kedge service, in chunks of 16 MiB.
        case service
        /// Any server with ranges and a strong ETag.
        case foreign
    }

    /// The end of the client, and the bytes that each connection may lose by it. They include heads
    /// and bytes that the system had not delivered.
    struct End: Sendable, CustomStringConvertible {
        let description: String
        let signal: Int32
        let lostByteCount: Int

        static let all = [
            End(description: "a kill", signal: SIGKILL, lostByteCount: 2 << 20),
            End(description: "Ctrl-C", signal: SIGINT, lostByteCount: 256 << 10),
        ]
    }

    // R1, R92, R105.
    @Test(arguments: Origin.allCases, End.all)
    func `a download that is stopped twice fetches little again`(
        origin: Origin, end: End
    ) async throws {
        let source = try fixture.sample(mebibytes: 64, plus: 4321)
        let content = SampleFile.bytes(source.byteCount, seed: 7)
        let foreign = try RangeServer { head, _ in .honest(content, etag: "\"one\"", head) }
        var name = "http://origin/file.bin"
        var port = foreign.port
        if origin == .service {
            let server = try await fixture.serve()
            let uploaded = try await fixture.run([
                "upload", source.path, "--server", server.url, "--chunk-size", "16777216", "--json",
            ])
            name = try #require(try uploaded.result.remoteFileId)
            port = server.port
        }
        let proxy = try fixture.proxy(to: port, Faults(bytesPerSecond: 16 << 20))
        if origin == .foreign { name = proxy.url + "/file.bin" }
        let command = [
            "download", name, "-o", fixture.path("copy.bin"), "--server", proxy.url, "--json",
        ]
        for target in [20 << 20, 44 << 20] {
            let client = try fixture.start(command)
            try await eventually("\(target) bytes passed") { proxy.counts.downByteCount >= target }
            client.signal(end.signal)
            _ = try await client.wait()
            try await eventually("the connections are gone") { proxy.counts.openCount == 0 }
        }
        let finished = try await fixture.run(command)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try SampleFile.digest(of: fixture.path("copy.bin")) == source.digest)
        let spent = proxy.counts.downByteCount - source.byteCount
        #expect(spent < 2 * Self.maxConnectionCount * end.lostByteCount)
    }
}
