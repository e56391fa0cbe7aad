import Foundation
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// The file of the audit log and its limits.
@Suite(.timeLimit(.minutes(1))) struct AuditLogTests {
    private let directory: TemporaryDirectory
    private let clock = ManualInstant()
    private let log = CapturedLog()

    init() throws { directory = try TemporaryDirectory() }

    private var path: String { "\(directory.path)/audit.jsonl" }

    private func open(_ path: String) throws -> AuditLog {
        try AuditLog(path: path, logger: log.logger()) { [clock] in clock.now }
    }

    private static func entry(_ id: String) -> AuditEntry {
        AuditEntry(
            time: Timestamp(millisecondsSinceEpoch: 0), requestId: id,
            action: "DELETE /files/{fileId}", object: "/files/1", status: 204)
    }

    @Test func `a line is one JSON object without absent members`() async throws {
        var entry = Self.entry("one")
        entry.owner = "a\u{202E}\"\n"
        let audit = try open(path)
        await audit.record(entry)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(
            text
                == #"{"action":"DELETE /files/{fileId}","object":"/files/1","#
                + #""owner":"a\u202e\"\n","requestId":"one","status":204,"#
                + "\"time\":\"1970-01-01T00:00:00.000Z\"}\n")
    }

    @Test func `the file is made for its owner only, and appended to`() async throws {
        let first = try open(path)
        await first.record(Self.entry("one"))
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        let second = try open(path)
        await second.record(Self.entry("two"))
        #expect(try auditLines(at: path).map(\.requestId) == ["one", "two"])
    }

    @Test func `after a rotation, lines go to the new file`() async throws {
        let audit = try open(path)
        await audit.record(Self.entry("one"))
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        await audit.record(Self.entry("two"))
        await audit.reopen()
        await audit.record(Self.entry("three"))
        #expect(try auditLines(at: path + ".1").map(\.requestId) == ["one", "two"])
        #expect(try auditLines(at: path).map(\.requestId) == ["three"])
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        #expect(try directory.openDescriptorCount() == 1)
    }

    @Test func `a reopening that fails keeps the old file`() async throws {
        let audit = try open(path)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        await audit.reopen()
        await audit.record(Self.entry("one"))
        #expect(try auditLines(at: path + ".1").map(\.requestId) == ["one"])
        #expect(log.lines.contains { $0.level == .error })
    }

    @Test func `a write that fails is logged once a minute`() async throws {
        // Each write to this device fails for lack of space.
        let audit = try open("/dev/full")
        for _ in 0..<5 { await audit.record(Self.entry("lost")) }
        #expect(log.lines.filter { $0.level == .error }.count == 1)
        clock.advance(by: .seconds(60))
        await audit.record(Self.entry("lost"))
        #expect(log.lines.filter { $0.level == .error }.count == 2)
    }

    @Test func `refusals above the limit are counted in the next line`() async throws {
        let audit = try open(path)
        for number in 0..<25 { await audit.recordRefusal(Self.entry("\(number)")) }
        await audit.record(Self.entry("change"))
        clock.advance(by: .seconds(1))
        await audit.recordRefusal(Self.entry("later"))
        await audit.recordRefusal(Self.entry("last"))
        let lines = try auditLines(at: path)
        #expect(
            lines.map(\.requestId) == (0..<10).map { "\($0)" } + ["change", "later", "last"])
        #expect(lines.map(\.suppressed).suffix(3) == [nil, 15, nil])
    }

    @Test(arguments: ["", "on", "audit", "stdout", "/var/log/", "./", ".", "..", "/a/.."])
    func `a word alone or a directory is no place of the log`(text: String) {
        #expect(AuditDestination(text: text) == nil)
    }

    @Test(
        arguments: [
            ("off", AuditDestination.off), ("stderr", .standardError), ("/a/b", .file("/a/b")),
            ("./b", .file("./b")), ("audit.jsonl", .file("audit.jsonl")), ("a/b", .file("a/b")),
        ] as [(String, AuditDestination)])
    func `the place is off, standard error or a path`(text: String, place: AuditDestination) {
        #expect(AuditDestination(text: text) == place)
    }

    @Test func `the oldest links are forgotten when there is no room`() {
        let links = RecentLinks(limit: 3)
        for link in ["a", "b", "c"] {
            #expect(links.insert(link))
            #expect(!links.insert(link))
        }
        #expect(links.insert("d"))
        #expect(!links.insert("b"))
        #expect(links.insert("a"))
        #expect(!links.insert("d"))
        #expect(links.insert("b"))
    }
}
