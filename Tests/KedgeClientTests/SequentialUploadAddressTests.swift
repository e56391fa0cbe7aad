import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Logging
import Testing

/// User and password in the server's URL: only the server's origin gets them, and no log has them.
@Suite(.timeLimit(.minutes(1)))
struct SequentialUploadAddressTests {
    private let bytes = TransferEnvironment.bytes(600_000)
    private static let creationURL = "http://me:hush@up.test/files/"

    private func upload(
        _ fixture: SequentialUploadEnvironment,
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferSnapshot {
        try fixture.base.write("source.bin", bytes)
        let client = try await fixture.client { configuration in
            configuration.serverURL = Self.creationURL
            configuration.token = nil
            change(&configuration)
        }
        return try await client.run(try await fixture.enqueue(client))
    }

    @Test(
        arguments: SequentialUploadEnvironment.protocols,
        ["http://up.test/files/", "http://other:one@up.test/files/", "/files/", ""])
    func `user and password are sent to each address of the origin and stored in none`(
        uploadProtocol: UploadProtocol, prefix: String
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.location = { prefix + $0 } }
        let snapshot = try await upload(fixture)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.uploadURL == "http://up.test/files/1")
        for method in ["POST", "HEAD", "PATCH"] {
            #expect(!fixture.seen(method).isEmpty)
            #expect(fixture.seen(method).allSatisfy { $0.url.hasPrefix(Self.creationURL) })
        }
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `another origin gets neither user nor password`(uploadProtocol: UploadProtocol)
        async throws
    {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.location = { "http://elsewhere.test/u/\($0)" } }
        fixture.expectUploaded(try await upload(fixture), bytes)
        #expect(fixture.seen("PATCH").allSatisfy { $0.url == "http://elsewhere.test/u/1" })
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `neither user and password nor the query of an address is logged`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let lines = Lines()
        fixture.plan(.rewrite { $0.fields[.location] = "/files/1?key=hush" }) {
            $0.method == "POST"
        }
        fixture.plan(.answer(Reply(status: 204, fields: [.uploadOffset: "600001"]))) {
            $0.method == "PATCH"
        }
        let snapshot = try await upload(fixture) { configuration in
            configuration.logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
            configuration.logger.logLevel = .trace
        }
        #expect(snapshot.errorCode == .sizeMismatch)
        #expect(lines.all.contains { $0.contains("http://up.test/files/1") })
        #expect(lines.all.allSatisfy { !$0.contains("hush") })
    }

    @Test(
        arguments: [
            ("http://a:b@h/p?q", "http://h/p?q"), ("http://a@h", "http://h"),
            ("http://h/p@q?r@s#t@u", "http://h/p@q?r@s#t@u"), ("http://a@b@h/", "http://h/"),
            ("/p@q", "/p@q"),
        ])
    func `only user and password are cut out of a URL`(url: String, expected: String) {
        #expect(URLText.withoutUserInfo(url) == expected)
    }

    @Test func `a URL takes user and password of the other URL`() {
        #expect(URLText.url("http://h/p", withUserInfoOf: "https://a:b@i") == "http://a:b@h/p")
        #expect(URLText.url("http://c@h/p", withUserInfoOf: "http://a@h") == "http://a@h/p")
        #expect(URLText.url("http://c@h/p", withUserInfoOf: "http://h") == "http://h/p")
    }

    @Test func `the logged form of a URL has no secret`() {
        #expect(URLText.redacted("https://a:b@h:1/p/q?r=s#t") == "https://h:1/p/q")
    }
}

/// The logged lines.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
}

private struct LineHandler: LogHandler {
    let lines: Lines
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.add("\(event.message) \(event.metadata ?? [:])")
    }
}
