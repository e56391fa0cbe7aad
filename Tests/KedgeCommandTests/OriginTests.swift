import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `kedge download` from real servers that give no strong ETag.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct OriginTests {
    private let fixture: CommandEnvironment
    private let folder: String

    init() throws {
        fixture = try CommandEnvironment()
        folder = fixture.path("origin")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
    }

    /// Publishes a file at the origin, with a modification time an hour ago.
    private func publish(_ content: [UInt8]) throws {
        let path = folder + "/file.bin"
        try Data(content).write(to: URL(fileURLWithPath: path))
        let date = Date(timeIntervalSince1970: Double(Int(Date().timeIntervalSince1970) - 3600))
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
    }

    private func command(_ proxy: FaultyProxy, _ more: String...) -> [String] {
        ["download", proxy.url + "/file.bin", "-o", fixture.path("copy.bin"), "--json"] + more
    }

    // R1, R132.
    @Test(
        .enabled(if: OriginProgram.areInstalled, "rclone: not installed"),
        arguments: OriginProgram.withRanges)
    func `a file with only a date downloads over a link that keeps failing`(program: OriginProgram)
        async throws
    {
        let content = SampleFile.bytes(24 << 20, seed: 7)
        try publish(content)
        let port = try await program.start(in: fixture, serving: folder)
        let proxy = try fixture.proxy(to: port, Faults(direction: .down, cutsAfter: 700 << 10))
        let finished = try await fixture.run(command(proxy), within: .seconds(120))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let isWhole =
            FileManager.default.contents(atPath: fixture.path("copy.bin")) == Data(content)
        #expect(isWhole)
        #expect(try finished.result.verification == "unverified")
        #expect(proxy.counts.cutCount > 20)
        #expect(proxy.counts.downByteCount < content.count * 13 / 10)
    }

    // R103: the file is replaced between two runs, with the same size and the same date.
    @Test(
        .enabled(if: OriginProgram.areInstalled, "rclone: not installed"),
        arguments: OriginProgram.withRanges)
    func `a file that was replaced with the same date is not mixed with the old one`(
        program: OriginProgram
    ) async throws {
        try publish(SampleFile.bytes(24 << 20, seed: 7))
        let port = try await program.start(in: fixture, serving: folder)
        let proxy = try fixture.proxy(to: port, Faults(bytesPerSecond: 6 << 20))
        let client = try fixture.start(command(proxy))
        try await eventually("bytes passed") { proxy.counts.downByteCount > 10 << 20 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        let before = try FileManager.default.attributesOfItem(atPath: folder + "/file.bin")
        let new = SampleFile.bytes(24 << 20, seed: 8)
        try publish(new)
        try FileManager.default.setAttributes(
            [.modificationDate: try #require(before[.modificationDate])],
            ofItemAtPath: folder + "/file.bin")
        proxy.faults = Faults()
        let finished = try await fixture.run(command(proxy))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let isNew = FileManager.default.contents(atPath: fixture.path("copy.bin")) == Data(new)
        #expect(isNew)
        let transfer = try #require(try finished.result.transferId)
        #expect(try await fixture.diagnose(transfer).remoteChangeCount == 1)
    }

    @Test func `a download from a server without ranges restarts, and the command reports it`()
        async throws
    {
        let content = SampleFile.bytes(24 << 20, seed: 7)
        try publish(content)
        let port = try await OriginProgram.python.start(in: fixture, serving: folder)
        let proxy = try fixture.proxy(to: port, Faults(bytesPerSecond: 8 << 20))
        let client = try fixture.start(command(proxy))
        try await eventually("bytes passed") { proxy.counts.downByteCount > 10 << 20 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        let finished = try await fixture.run(command(proxy, "--sha256", digest(of: content)))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(finished.output.contains("PRECONDITION_FAILED"))
        #expect(try finished.result.verification == "sha256")
        #expect(proxy.counts.downByteCount > content.count + 10 << 20)
    }

    @Test func `a file with another SHA-256 than the given one is refused`() async throws {
        try publish(SampleFile.bytes(1 << 20, seed: 7))
        let port = try await OriginProgram.python.start(in: fixture, serving: folder)
        let proxy = try fixture.proxy(to: port)
        let wrong = try await fixture.run(
            command(proxy, "--sha256", String(repeating: "0", count: 64)))
        #expect(wrong.termination == .exited(ExitStatus.integrity))
        #expect(!FileManager.default.fileExists(atPath: fixture.path("copy.bin")))
        let malformed = try await fixture.run(command(proxy, "--sha256", "0"))
        #expect(malformed.termination == .exited(ExitStatus.usage))
    }

    private func digest(of content: [UInt8]) throws -> String {
        SHA256Hasher.digest(of: content).hex
    }
}

/// A program that serves a folder and gives no strong ETag.
enum OriginProgram: String, Sendable, CustomStringConvertible {
    case nginx = "nginx with etag off"
    case rclone = "rclone serve http"
    case python = "python3 -m http.server"

    static let withRanges = [nginx, rclone]

    var description: String { rawValue }

    private static let rclonePath: String? = ["/usr/bin/rclone", "/usr/local/bin/rclone"]
        .first { access($0, X_OK) == 0 }

    static let areInstalled = Nginx.path != nil && rclonePath != nil

    /// Starts the program on a free port.
    func start(in fixture: CommandEnvironment, serving folder: String) async throws -> UInt16 {
        // The test releases the port before the program binds it, because no program reports a port
        // of its choice.
        let (descriptor, port) = try LoopbackSocket.bound()
        close(descriptor)
        let process =
            switch self {
            case .nginx:
                try fixture.start(
                    program: Nginx.path ?? "nginx",
                    [
                        "-c", try Self.configuration(in: fixture, serving: folder, port: port),
                        "-e", fixture.path("nginx-error.log"),
                    ], endsGently: true)
            case .rclone:
                try fixture.start(
                    program: Self.rclonePath ?? "rclone",
                    ["serve", "http", folder, "--addr", "127.0.0.1:\(port)"], endsGently: true)
            case .python:
                try fixture.start(
                    program: "/usr/bin/env",
                    [
                        "python3", "-m", "http.server", "\(port)", "--bind", "127.0.0.1",
                        "--directory", folder,
                    ], endsGently: true)
            }
        try await eventually("\(self) listens") {
            guard process.isRunning else { throw TestFailure("\(self) ended: \(process.errors)") }
            guard let socket = LoopbackSocket.connect(to: port) else { return false }
            close(socket)
            return true
        }
        return port
    }

    private static func configuration(
        in fixture: CommandEnvironment, serving folder: String, port: UInt16
    ) throws -> String {
        let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(fixture.path("nginx-" + $0));" }.joined(separator: " ")
        let text = """
            daemon off; worker_processes 1; pid \(fixture.path("nginx.pid")); user root;
            events {}
            http {
                access_log off; etag off; \(places)
                server { listen 127.0.0.1:\(port); root \(folder); }
            }
            """
        let path = fixture.path("nginx.conf")
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }
}
