import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// The example in `deploy/nginx.conf` in front of a real server.
@Suite(.timeLimit(.minutes(2)), .enabled(if: Nginx.path != nil, "nginx: not installed"))
struct NginxTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `a file survives upload and download through nginx and kills of the server`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 60)
        var server = try await fixture.serve()
        // nginx forwards to this proxy, so that the next server may have another port.
        let backend = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 32 << 20))
        let nginx = try await Nginx.start(in: fixture, upstreamPort: backend.port)
        let client = try fixture.start(["upload", source.path, "--server", nginx.url, "--json"])
        var buffered: Set<String> = []
        try await eventually("some chunks are there") {
            buffered.formUnion(nginx.bufferedFiles(in: fixture))
            return server.requests.created.count >= 4
        }
        let first = server
        let acknowledged = Set(first.requests.created.keys)
        first.process.signal(SIGKILL)
        _ = try await first.process.wait()
        server = try await fixture.serve()
        backend.upstreamPort = server.port
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        let later = Set(server.requests.created.keys)
        #expect(acknowledged.intersection(later) == [])

        let copy = fixture.path("copy")
        let id = try #require(try finished.result.remoteFileId)
        let before = backend.counts.downByteCount
        let download = try fixture.start(
            ["download", id, "-o", copy, "--server", nginx.url, "--json"])
        try await eventually("bytes come back") {
            buffered.formUnion(nginx.bufferedFiles(in: fixture))
            return backend.counts.downByteCount > before + 10 << 20
        }
        server.process.signal(SIGKILL)
        _ = try await server.process.wait()
        backend.upstreamPort = try await fixture.serve().port
        try await fixture.finish(download).expectCompleted(source)
        #expect(try SampleFile.digest(of: copy) == source.digest)
        #expect(buffered == [], "a body was gathered in a file")
    }

    /// The place and the byte count at which a link dies.
    struct Break: Sendable, CustomTestStringConvertible {
        var isBefore: Bool
        var byteCount: Int
        var cut = Faults.Cut.finish
        var testDescription: String {
            "\(byteCount >> 10) KiB, \(isBefore ? "before" : "behind") nginx, \(cut)"
        }
    }

    // nginx forwards a body while it arrives, so a link that dies before nginx loses no bytes. The
    // last bytes of a link behind nginx arrive as well, and nginx answers 502 to the rest.
    @Test(arguments: [
        Break(isBefore: true, byteCount: 300 << 10), Break(isBefore: true, byteCount: 1 << 20),
        Break(isBefore: true, byteCount: 2500 << 10, cut: .reset),
        Break(isBefore: false, byteCount: 300 << 10), Break(isBefore: false, byteCount: 2500 << 10),
    ])
    func `an upload through nginx over a link that keeps failing resumes inside its chunks`(
        place: Break
    ) async throws {
        let source = try fixture.sample(mebibytes: 20)
        let server = try await fixture.serve()
        let faults = Faults(direction: .up, cutsAfter: place.byteCount, cut: place.cut)
        let behind = try fixture.proxy(to: server.port, place.isBefore ? Faults() : faults)
        let nginx = try await Nginx.start(in: fixture, upstreamPort: behind.port)
        let before = try fixture.proxy(to: nginx.port, place.isBefore ? faults : Faults())
        let finished = try await fixture.run(
            ["upload", source.path, "--server", before.url, "--json"])
        try finished.expectCompleted(source)
        let continued = server.requests.chunks.filter { ($0.firstByte ?? 0) % (4 << 20) != 0 }
        #expect(!continued.isEmpty)
        #expect(server.requests.created.filter { $0.value > 1 } == [:])
        // Bytes that nginx received and did not forward do not count.
        let crossed = min(before.counts.upByteCount, behind.counts.upByteCount)
        #expect(
            Double(crossed) < 1.3 * Double(source.byteCount),
            "\(before.counts.upByteCount) before, \(behind.counts.upByteCount) behind")
    }

    @Test func `a restart of the server behind nginx costs less than a chunk`() async throws {
        let source = try fixture.sample(mebibytes: 40)
        let server = try await fixture.serve(["--shutdown-drain-seconds", "0"])
        let backend = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let nginx = try await Nginx.start(in: fixture, upstreamPort: backend.port)
        let client = try fixture.start(["upload", source.path, "--server", nginx.url, "--json"])
        try await eventually("some chunks are there") { server.requests.created.count >= 2 }
        server.process.signal(SIGTERM)
        _ = try await server.process.wait()
        backend.upstreamPort = try await fixture.serve().port
        try await fixture.finish(client).expectCompleted(source)
        #expect(backend.counts.upByteCount < source.byteCount + 4 << 20)
    }
}

/// An nginx process for one test.
struct Nginx {
    let port: UInt16
    var url: String { "http://127.0.0.1:\(port)" }

    static let path: String? = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"]
        .first { access($0, X_OK) == 0 }

    private static let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]

    /// Starts nginx with `deploy/nginx.conf` on a free port.
    static func start(in fixture: CommandEnvironment, upstreamPort: UInt16) async throws -> Nginx {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let directory = fixture.path("nginx")
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false)
        // The test releases the port before nginx binds it, because nginx cannot report a port of
        // its choice.
        let (descriptor, port) = try LoopbackSocket.bound()
        close(descriptor)
        let render = try fixture.start(
            program: "/usr/bin/env",
            [
                "bash", root.path + "/Tests/support/render_nginx.sh", "127.0.0.1:\(port)",
                "127.0.0.1:\(upstreamPort)", directory,
            ])
        guard try await render.wait() == .exited(0) else { throw TestFailure(render.errors) }
        let file = directory + "/nginx.conf"
        try render.output.write(toFile: file, atomically: false, encoding: .utf8)
        guard let path else { throw TestFailure("nginx is not installed") }
        // The workers would outlive a killed master.
        let process = try fixture.start(
            program: path, ["-c", file, "-e", directory + "/error.log"], endsGently: true)
        try await eventually("nginx listens") {
            guard process.isRunning else { throw TestFailure("nginx ended: \(process.errors)") }
            guard let socket = LoopbackSocket.connect(to: port) else { return false }
            close(socket)
            return true
        }
        return Nginx(port: port)
    }

    /// Files in which nginx buffered a body.
    func bufferedFiles(in fixture: CommandEnvironment) -> [String] {
        Self.places.flatMap { place in
            let directory = fixture.path("nginx/\(place)")
            return (FileManager.default.subpaths(atPath: directory) ?? []).filter { name in
                var isDirectory: ObjCBool = false
                _ = FileManager.default.fileExists(
                    atPath: "\(directory)/\(name)", isDirectory: &isDirectory)
                return !isDirectory.boolValue
            }
        }
    }
}
