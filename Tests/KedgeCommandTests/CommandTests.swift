import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge` as a shell sees it: streams, statuses and names.
///
/// Serialized, because each test runs processes: several at a time would only measure the machine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct CommandTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `a missing file among several does not stop the others`() async throws {
        let samples = try (1...3).map { number in
            try fixture.sample("file \(number)", mebibytes: 1, plus: number, seed: UInt64(number))
        }
        let server = try await fixture.serve()
        let paths = [samples[0].path, fixture.path("missing"), samples[1].path, samples[2].path]
        let finished = try await fixture.run(
            ["upload"] + paths + ["--server", server.url, "--json"])
        #expect(finished.termination == .exited(ExitStatus.someFailed))
        let results = try finished.results
        #expect(results.map(\.state) == ["completed", "failed", "completed", "completed"])
        #expect(results[1].errorCode == "FILE_MISSING")
        #expect(
            results.compactMap(\.fileHashSha256) == samples.map(\.digest.hex))
        let text = try await fixture.run(["upload"] + paths + ["--server", server.url])
        #expect(text.termination == .exited(ExitStatus.someFailed))
        #expect(text.lines.count == 3)
        #expect(text.errors.contains("missing"))
    }

    @Test func `several files print one id a line and nothing else`() async throws {
        let samples = try (1...5).map { number in
            try fixture.sample(
                "\(number).bin", mebibytes: 0, plus: 1000 * number, seed: UInt64(number))
        }
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            ["upload"] + samples.map(\.path) + ["--server", server.url])
        #expect(finished.termination == .exited(0))
        #expect(finished.lines.count == 5)
        #expect(finished.lines.allSatisfy { FileID($0) != nil }, "\(finished.output)")
        for (id, sample) in zip(finished.lines, samples) {
            try await fixture.expectServed(sample, id: id, at: server.url)
        }
        let quiet = try await fixture.run(
            ["upload", samples[0].path, "--server", server.url, "--quiet"])
        #expect(quiet.errors == "")
        #expect(quiet.lines.count == 1)
    }

    // Standard error is for people: it has no log lines, and nothing at all with `--quiet`.
    @Test func `a chunk that is damaged on the way and sent again is no error`() async throws {
        let sample = try fixture.sample(mebibytes: 8)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(flipsEvery: 3 << 20))
        let finished = try await fixture.run(
            ["upload", sample.path, "--server", proxy.url, "--quiet", "--chunk-size", "1048576"])
        #expect(finished.termination == .exited(0))
        #expect(proxy.counts.flipCount > 0)
        #expect(finished.errors == "")
    }

    @Test(arguments: [("262144", "1048576"), ("8388608", "16777216")])
    func
        `a server with other chunk size limits takes uploads and reports a changed chunk size`(
            least: String, most: String
        ) async throws
    {
        let sample = try fixture.sample(mebibytes: 20, plus: 1)
        let server = try await fixture.serve([
            "--limits-min-chunk-size", least, "--limits-max-chunk-size", most,
            "--limits-default-chunk-size", most,
        ])
        let upload = ["upload", sample.path, "--server", server.url]
        let plain = try await fixture.run(upload)
        #expect(plain.termination == .exited(0))
        #expect(!plain.errors.contains("instead of"))
        let wished = try await fixture.run(upload + ["--again", "--chunk-size", "2097152"])
        #expect(wished.termination == .exited(0))
        #expect(wished.errors.contains("bytes were used instead of 2097152"))
        try await fixture.expectServed(
            sample, id: wished.lines.first, at: server.url)
    }

    static let sizes = [0, 1, 4095, 262_144, 4 << 20, 4 << 20 + 1]

    @Test(arguments: sizes)
    func `a file of any size survives upload and download`(byteCount: Int) async throws {
        let sample = try fixture.sample(mebibytes: 0, plus: byteCount)
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            ["upload", sample.path, "--server", server.url, "--json"])
        try finished.expectCompleted(sample)
        try await fixture.expectServed(
            sample, id: finished.result.remoteFileId, at: server.url)
    }

    static let names = [
        "two words", "it's \"quoted\"", "ünïcødé-文件-🚢", "tab\tand\nnewline", "-dash",
        "percent%20%2F", "semi;colon&$HOME", "back\\slash", "\u{202E}gnp.exe",
        "דוח\u{200F}(1)\u{200E}.pdf", "می\u{200C}خواهم",
        String(repeating: "n", count: 255),
    ]

    // R130: a name is data, never a path, an option or an instruction.
    @Test(arguments: names)
    func `a file of any name survives upload and download`(name: String) async throws {
        let sample = try fixture.sample(name, mebibytes: 0, plus: 3000)
        let folder = fixture.path("folder")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let server = try await fixture.serve()
        let up = try await fixture.run([
            "upload", "--server", server.url, "--json", "--", sample.path,
        ])
        try up.expectCompleted(sample)
        let id = try #require(try up.result.remoteFileId)
        let down = try await fixture.run(
            ["download", id, "-o", folder, "--server", server.url, "--json"])
        try down.expectCompleted(sample)
        #expect(fixture.names(in: folder) == [FileName.sanitized(name)])
        #expect(
            try SampleFile.digest(of: "\(folder)/\(FileName.sanitized(name))") == sample.digest)
        let list = try await fixture.run(["files", "list", "--server", server.url])
        // With a header.
        #expect(list.lines.count == 2)
        let json = try await fixture.run(["files", "list", "--json", "--server", server.url])
        for text in [up.output, down.output, list.output, json.output] {
            let steering = text.unicodeScalars.filter { ControlCharacters.steers($0) && $0 != "\n" }
            #expect(steering.isEmpty, "a terminal obeys nothing")
        }
        let meta = try JSONDecoder().decode(FileMeta.self, from: Data(json.output.utf8))
        #expect(meta.fileName == FileName.sanitized(name))
    }

    @Test func `files are listed, shown and removed`() async throws {
        let sample = try fixture.sample("one", mebibytes: 0, plus: 5000)
        let server = try await fixture.serve()
        let id = try await fixture.upload(sample, to: server.url)
        let show = try await fixture.run(["files", "show", id, "--server", server.url])
        let meta = try JSONDecoder().decode(FileMeta.self, from: Data(show.output.utf8))
        #expect(meta.remoteFileId.text == id)
        #expect(meta.fileName == "one")
        #expect(meta.size == 5000)
        #expect(meta.sha256 == sample.digest)
        let list = try await fixture.run(["files", "list", "--json", "--server", server.url])
        #expect(list.output == show.output)
        let remove = try await fixture.run(["files", "rm", id, "--server", server.url])
        #expect(remove.termination == .exited(0))
        #expect(remove.output == "")
        let again = try await fixture.run(["files", "show", id, "--server", server.url])
        #expect(again.termination == .exited(ExitStatus.notFound))
        #expect(try await fixture.run(["files", "--server", server.url]).output == "")
    }

    @Test func `removing several files reports the missing one and removes the others`()
        async throws
    {
        let server = try await fixture.serve()
        var ids: [String] = []
        for number in 1...2 {
            let sample = try fixture.sample(
                "\(number)", mebibytes: 0, plus: 10, seed: UInt64(number))
            ids.append(try await fixture.upload(sample, to: server.url))
        }
        let finished = try await fixture.run(
            ["files", "rm", ids[0], Self.unknownID, ids[1], "--server", server.url])
        #expect(finished.termination == .exited(ExitStatus.someFailed))
        let lines = finished.errors.split(separator: "\n")
        #expect(lines.count == 1 && lines.allSatisfy { $0.contains(Self.unknownID) })
        #expect(try await fixture.run(["files", "--server", server.url]).output == "")
        let none = try await fixture.run(["files", "rm", Self.unknownID, "--server", server.url])
        #expect(none.termination == .exited(ExitStatus.notFound))
        #expect(none.errors.contains(Self.unknownID))
    }

    // R107.
    @Test func `a failure is printed once, with the server's reason`() async throws {
        let sample = try fixture.sample("large", mebibytes: 2)
        let server = try await fixture.serve(["--limits-max-file-size", "1048576"])
        let finished = try await fixture.run(["upload", sample.path, "--server", server.url])
        #expect(finished.termination == .exited(ExitStatus.tooLarge))
        let sentence = ErrorCode.fileTooLarge.facts.sentence
        #expect(finished.errors.components(separatedBy: sentence).count == 2, "\(finished.errors)")
        let refused = try await fixture.run([
            "upload", sample.path, "--server", server.url, "--mime-type", "no type",
        ])
        #expect(refused.errors.components(separatedBy: "mimeType").count == 2, "\(refused.errors)")
    }

    // R61, R104–R109, R142.
    @Test func `transfers and sessions are listed, shown and diagnosed`() async throws {
        let sample = try fixture.sample("one", mebibytes: 9)
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            ["upload", sample.path, "--server", server.url, "--json"])
        let id = try #require(try finished.result.transferId)
        let listed = try await fixture.transfers()
        #expect(listed.map(\.transferId) == [id])
        let shown = try TransferLine.all(
            try await fixture.run(["transfers", "show", id, "--json"]).output)
        #expect(shown.map(\.state) == ["completed"])
        #expect(shown.first?.bytesTransferred == 9 << 20)
        let diagnosis = try await fixture.diagnose(id)
        #expect(diagnosis.version == 1)
        #expect(diagnosis.totalChunks == 3)
        #expect(diagnosis.missingRanges == [])
        #expect(diagnosis.totalAttempts == 3)
        #expect(diagnosis.lastServerStatus == 200)
        let session = try await fixture.session(
            try #require(diagnosis.sessionId), at: server.url)
        #expect(session.state == .completed)
        #expect(session.receivedChunks == [0, 1, 2])
        #expect(session.remoteFileId?.text == (try finished.result.remoteFileId))
        let text = try await fixture.run(["transfers"])
        #expect(text.lines.count == 2)
    }

    // A broken pipe is success.
    @Test func `a command whose reader goes away succeeds`() async throws {
        let sample = try fixture.sample("one", mebibytes: 0, plus: 10)
        let server = try await fixture.serve()
        _ = try await fixture.upload(sample, to: server.url)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        close(ends[0])
        let client = try fixture.start(
            ["files", "list", "--server", server.url], output: ends[1])
        #expect(try await client.wait() == .exited(0))
        #expect(client.errors == "")
    }

    private static let unknownID = String(repeating: "0", count: 32)

    static let wrongLines: [([String], Int32)] = [
        (["upload", "file", "--no-such-option"], ExitStatus.usage),
        (["no-such-command"], ExitStatus.usage),
        (["upload"], ExitStatus.usage),
        (["upload", "file"], ExitStatus.usage),
        (["upload", "file", "--server", "not a url"], ExitStatus.usage),
        (["upload", "file", "--server", "SERVER", "--parallel", "0"], ExitStatus.usage),
        (["upload", "/dev/null", "--server", "SERVER"], ExitStatus.usage),
        (["upload", "/no/such/file", "--server", "SERVER"], ExitStatus.sourceChanged),
        (["download", "no-id", "--server", "SERVER"], ExitStatus.usage),
        (["download", "ftp://host/file", "-o", "x"], ExitStatus.usage),
        (["files", "show", unknownID, "--server", "SERVER"], ExitStatus.notFound),
        (["session", "show", unknownID, "--server", "SERVER"], ExitStatus.notFound),
        (["transfers", "show", unknownID], ExitStatus.notFound),
        (["transfers", "pause", "x"], ExitStatus.usage),
        (["serve", "--limits-max-file-size", "-5"], ExitStatus.usage),
        (["serve", "--port", "70000"], ExitStatus.usage),
    ]

    @Test(arguments: wrongLines)
    func `a command that cannot work fails with its own exit status`(
        arguments: [String], status: Int32
    ) async throws {
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            arguments.map { $0 == "SERVER" ? server.url : $0 }, within: .seconds(10))
        #expect(finished.termination == .exited(status), "\(finished.errors)")
        #expect(finished.output == "")
        #expect(finished.errors != "")
    }

    /// Threads of libraries may still be starting when such a command ends: it died of a signal in
    /// one of thirty runs on a busy machine.
    @Test func `a command that fails at once exits with its status`() async throws {
        for _ in 0..<12 {
            let children = try (0..<4).map { _ in
                try fixture.start(["upload", "file", "--server", "not a url"])
            }
            for child in children {
                #expect(try await fixture.finish(child).termination == .exited(ExitStatus.usage))
            }
        }
    }

    @Test(arguments: [["--help"], ["upload", "--help"], ["--version"], ["help", "serve"]])
    func `help and version go to standard output`(arguments: [String]) async throws {
        let finished = try await fixture.run(arguments)
        #expect(finished.termination == .exited(0))
        #expect(finished.output != "")
        #expect(finished.errors == "")
    }

    @Test func `an argument that is not text is refused, and not repaired`() async throws {
        let script = "exec \"$0\" upload \"$(printf 'a\\377')\""
        let shell = try fixture.start(
            program: "/bin/sh", ["-c", script, try Command.path()])
        let finished = try await fixture.finish(shell)
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains("argument 2 is not UTF-8"))
    }

    @Test func `environment variables replace flags`() async throws {
        let sample = try fixture.sample("one", mebibytes: 0, plus: 10)
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            ["upload", sample.path, "--json", "--state-directory", fixture.path("elsewhere")],
            environment: ["KEDGE_SERVER": server.url])
        try finished.expectCompleted(sample)
        #expect(fixture.names(in: fixture.path("elsewhere")).contains("transfers.sqlite"))
        #expect(fixture.names(in: fixture.path("state")) == [])
    }
}
