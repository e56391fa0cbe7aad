import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge upload --dialect` to third-party servers, and to the tus and IETF front ends of Kedge.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ForeignServerTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private static let names = ["tuspyserver", "resumable-upload"]
    private static let hasServers = ForeignServer.python != nil
    private static let reason: Comment = "foreign-servers: not installed; see make test-deps"

    private func command(
        _ source: SampleFile, _ uploadProtocol: ProtocolName, _ url: String
    ) -> [String] {
        ["upload", source.path, "--server", url, "--dialect", uploadProtocol.rawValue, "--json"]
    }

    /// Kills the command once so many bytes of an upload are acknowledged.
    ///
    /// - Returns: The number of acknowledged bytes.
    private func kill(
        _ command: [String], after byteCount: Int64, through proxy: FaultyProxy
    ) async throws -> Int64 {
        let client = try fixture.start(command)
        try await eventually("bytes pass") { proxy.counts.upByteCount > Int(byteCount) }
        _ = try await fixture.transfer { ($0.bytesTransferred ?? 0) >= byteCount }
        client.signal(SIGKILL)
        #expect(try await client.wait() == .signaled(SIGKILL))
        // The system still sends bytes that the process had written.
        try await eventually("the rest has passed") { proxy.counts.openCount == 0 }
        return try #require(try await fixture.transfers().last?.bytesTransferred)
    }

    // R1, R6, R105, R134.
    @Test(.enabled(if: hasServers, reason), arguments: names)
    func `a killed upload to a third-party server resumes at that server's offset`(name: String)
        async throws
    {
        let source = try fixture.sample(mebibytes: 48, plus: 1)
        let server = try await ForeignServer.start(name, in: fixture)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 16 << 20))
        let command = command(source, .tus, server.url(through: proxy))
        let acknowledged = try await kill(command, after: 4 << 20, through: proxy)
        proxy.faults = Faults()
        let before = proxy.counts.upByteCount
        let finished = try await fixture.run(command)
        try finished.expectCompleted(source)
        #expect(try finished.result.verification == "unverified")
        #expect(try finished.result.remoteFileId == nil)
        #expect(try server.digests(ofFilesWith: source.byteCount) == [source.digest])
        let sent = proxy.counts.upByteCount - before
        // The heads of requests count, too.
        #expect(sent <= source.byteCount - Int(acknowledged) + 64 << 10)
        // A completed upload is not sent again.
        let again = proxy.counts.upByteCount
        try await fixture.run(command).expectCompleted(source)
        #expect(proxy.counts.upByteCount - again < 64 << 10)
    }

    // R132.
    @Test(.enabled(if: hasServers, reason), arguments: names, Faults.Cut.allCases)
    func `an upload to a third-party server completes over a link that keeps failing`(
        name: String, cut: Faults.Cut
    ) async throws {
        let source = try fixture.sample(mebibytes: 12, plus: 1)
        let server = try await ForeignServer.start(name, in: fixture)
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .up, cutsAfter: 900 << 10, cut: cut))
        let finished = try await fixture.run(
            command(source, .tus, server.url(through: proxy)), within: .seconds(200))
        try finished.expectCompleted(source)
        #expect(try server.digests(ofFilesWith: source.byteCount) == [source.digest])
        #expect(proxy.counts.cutCount > 0)
    }

    @Test(.enabled(if: hasServers, reason), arguments: names)
    func `a canceled upload is removed from a third-party server`(name: String) async throws {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await ForeignServer.start(name, in: fixture)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let client = try fixture.start(command(source, .tus, server.url(through: proxy)))
        let transfer = try await fixture.transfer { ($0.bytesTransferred ?? 0) > 0 }
        let id = try #require(transfer.transferId)
        #expect(try await fixture.run(["transfers", "cancel", id]).termination == .exited(0))
        #expect(try await client.wait() == .exited(1))
        try await eventually("the bytes are gone") {
            server.files.values.allSatisfy { $0 < 1 << 20 }
        }
    }

    // R1, R134: kills of both sides.
    @Test(arguments: ProtocolName.allCases)
    func `a killed upload through another protocol of Kedge resumes`(uploadProtocol: ProtocolName)
        async throws
    {
        let source = try fixture.sample(mebibytes: 48, plus: 1)
        var server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 16 << 20))
        let command = command(source, uploadProtocol, proxy.url + uploadProtocol.path)
        let acknowledged = try await kill(command, after: 4 << 20, through: proxy)
        server.process.signal(SIGKILL)
        _ = try await server.process.wait()
        server = try await fixture.serve()
        proxy.upstreamPort = server.port
        proxy.faults = Faults()
        let before = proxy.counts.upByteCount
        let id = try #require(try await fixture.transfers().last?.transferId)
        let finished = try await fixture.run(["transfers", "resume", id, "--json"])
        try finished.expectCompleted(source)
        #expect(
            proxy.counts.upByteCount - before <= source.byteCount - Int(acknowledged) + 64 << 10)
        #expect(try finished.result.verification == "sha256")
        try await fixture.expectServed(
            source, id: try finished.result.remoteFileId, at: server.url)
    }

    // R1: the client does not wait for an error that cannot pass.
    @Test(arguments: ProtocolName.allCases)
    func `a redirect loop on a finished upload ends the command with an error`(
        uploadProtocol: ProtocolName
    )
        async throws
    {
        let source = try fixture.sample(mebibytes: 1)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults())
        let command = command(source, uploadProtocol, proxy.url + uploadProtocol.path)
        try await fixture.run(command).expectCompleted(source)
        let circle = try RangeServer { _, _ in
            RangeServer.Answer(status: 307, fields: ["Location": "/files/1"])
        }
        proxy.upstreamPort = circle.port
        let again = try await fixture.run(command, within: .seconds(30))
        #expect(again.termination == .exited(ExitStatus.usage))
        #expect(again.lines.contains { $0.contains("REDIRECTED") })
    }

    /// The upload protocols by their names on the command line, with their paths on a Kedge server.
    enum ProtocolName: String, CaseIterable, Sendable {
        case tus
        case resumableUpload = "resumable-upload"

        var path: String { self == .tus ? "/tus/" : "/files" }
    }
}

extension Finished {
    /// The URL of the upload in the result.
    var uploadURL: String? {
        get throws {
            struct Line: Decodable {
                var type: String
                var uploadUrl: String?
            }
            return try lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
                .last { $0.type == "result" }?.uploadUrl
        }
    }
}
