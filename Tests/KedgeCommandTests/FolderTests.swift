import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge upload -r` and `kedge download --prefix`.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct FolderTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Paths and contents of the files of a folder.
    private static let contents = [
        "写真/a.txt": "a", "写真/旅行 2024/動画.mp4": "long " + String(repeating: "x", count: 300_000),
        "写真/.hidden/b": "b", "写真/deep/er/c": "", "写真/e\u{301}.txt": "decomposed",
    ]

    /// Writes the files, a link and an empty folder. Returns the path of the folder.
    private func makeFolder() throws -> String {
        for (path, content) in Self.contents {
            let place = fixture.path("here/\(path)")
            try FileManager.default.createDirectory(
                atPath: (place as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true)
            try Data(content.utf8).write(to: URL(fileURLWithPath: place))
        }
        let folder = fixture.path("here/写真")
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder)/link", withDestinationPath: "/etc/passwd")
        try FileManager.default.createDirectory(
            atPath: "\(folder)/empty", withIntermediateDirectories: false)
        return folder
    }

    private func expectContents(
        _ expected: [String: String], in folder: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var found: [[UInt8]: String] = [:]
        let names = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String }
        for name in names ?? [] {
            let place = "\(folder)/\(name)"
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: place, isDirectory: &isFolder)
            guard !isFolder.boolValue else { continue }
            found[Array(name.utf8)] = try String(contentsOfFile: place, encoding: .utf8)
        }
        let wanted = Dictionary(
            uniqueKeysWithValues: expected.map { (Array($0.key.utf8), $0.value) })
        #expect(found == wanted, sourceLocation: sourceLocation)
    }

    private func fileCount(_ server: Server) async throws -> Int {
        try await fixture.run(
            ["files", "list", "--json", "--server", server.url]).output
            .split(separator: "\n").count
    }

    @Test func `a folder arrives elsewhere with its paths, and only what is missing moves again`()
        async throws
    {
        let server = try await fixture.serve()
        let folder = try makeFolder()
        let upload = ["upload", "-r", folder, "--server", server.url]
        let first = try await fixture.run(upload)
        #expect(first.termination == .exited(0))
        #expect(first.errors.contains("写真/link: skipped: a symbolic link."))
        #expect(first.errors.contains("写真/empty: skipped: an empty folder."))
        #expect(try await fileCount(server) == 5)

        // From the records; from the server's list; and after a change.
        for state in ["state", "other"] {
            let again = try await fixture.run(
                upload, environment: ["XDG_STATE_HOME": fixture.path(state)])
            #expect(again.termination == .exited(0))
            #expect(again.errors.contains("5 files: 0 done, 5 already there"))
            #expect(again.output == first.output.replacingOccurrences(of: "\r", with: ""))
        }
        #expect(try await fileCount(server) == 5)
        var expected = Self.contents
        expected["写真/a.txt"] = "changed"
        try Data("changed".utf8).write(to: URL(fileURLWithPath: "\(folder)/a.txt"))
        let changed = try await fixture.run(upload)
        #expect(changed.errors.contains("5 files: 1 done, 4 already there"))
        #expect(try await fileCount(server) == 6)

        let destination = fixture.path("there")
        let download = ["download", "--prefix", "写真", "-o", destination, "--server", server.url]
        let downloaded = try await fixture.run(download)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        try expectContents(expected, in: destination)
        try FileManager.default.removeItem(atPath: "\(destination)/写真/a.txt")
        let rest = try await fixture.run(download)
        #expect(rest.errors.contains("5 files: 1 done, 4 already there"))
        try expectContents(expected, in: destination)
    }

    @Test func `patterns choose files, and a dry run transfers nothing`() async throws {
        let server = try await fixture.serve()
        let folder = try makeFolder()
        let upload = ["upload", "-r", folder, "--server", server.url]
        let plan = try await fixture.run(upload + ["--dry-run", "--exclude", ".*"])
        #expect(plan.termination == .exited(0))
        #expect(plan.output.contains("写真/旅行 2024/動画.mp4"))
        #expect(!plan.output.contains(".hidden"))
        #expect(try await fileCount(server) == 0)
        _ = try await fixture.run(
            upload + ["--include", "*.txt", "--include", "deep/**", "--exclude", "\u{e9}.txt"])
        let listed = try await fixture.run(
            ["download", "--prefix", "", "--dry-run", "--server", server.url])
        #expect(listed.output.contains("写真/a.txt"))
        #expect(listed.output.contains("写真/deep/er/c"))
        #expect(listed.errors.hasPrefix("2 files"))
    }

    @Test func `files that a download could not return are left out by name`() async throws {
        let server = try await fixture.serve()
        for folder in ["one/s", "two/s"] {
            try FileManager.default.createDirectory(
                atPath: fixture.path(folder), withIntermediateDirectories: true)
            try Data(folder.utf8).write(to: URL(fileURLWithPath: fixture.path("\(folder)/f")))
        }
        let (first, second) = (fixture.path("one/s"), fixture.path("two/s"))
        let upload = ["upload", "-r", first, second, "--server", server.url]
        for _ in 0..<2 {
            let finished = try await fixture.run(upload)
            #expect(finished.termination == .exited(ExitStatus.someFailed))
            #expect(finished.errors.contains("two/s/f: USAGE: It is left out"))
        }
        #expect(try await fileCount(server) == 1)
        for prefix in ["../x", "/abs", "a/./b", "a//b"] {
            let finished = try await fixture.run(
                ["upload", "-r", first, "--prefix", prefix, "--server", server.url])
            #expect(finished.termination == .exited(ExitStatus.usage), "\(prefix)")
        }
        let none = try await fixture.run(
            ["upload", "-r", first, "--include", "nothing", "--server", server.url])
        #expect(none.termination == .exited(ExitStatus.notFound))
        let unsized = try await fixture.run(["upload", "/proc/cpuinfo", "--server", server.url])
        #expect(unsized.termination == .exited(ExitStatus.usage))
        // It has no first byte that could be read.
        let unreadable = try await fixture.run(
            ["upload", "/proc/self/mem", "--server", server.url, "--json"])
        #expect(try unreadable.result.errorCode == "STORE_DAMAGED")
        #expect(unreadable.errors.contains("the file to upload"), "\(unreadable.errors)")
        #expect(try await fileCount(server) == 1)
    }

    @Test func `an upload that was interrupted without a path is not taken for one with a path`()
        async throws
    {
        let server = try await fixture.serve()
        let folder = fixture.path("trip")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let source = try SampleFile.write("\(folder)/v.bin", byteCount: 12 << 20, seed: 5)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try fixture.start(["upload", source.path, "--server", proxy.url])
        try await eventually("a chunk is there") { server.requests.created.count >= 1 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        let finished = try await fixture.run(["upload", "-r", folder, "--server", proxy.url])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let destination = fixture.path("there")
        let downloaded = try await fixture.run(
            ["download", "--prefix", "trip", "-o", destination, "--server", server.url])
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: "\(destination)/trip/v.bin") == source.digest)
        // Nothing is left for `resume --all`.
        let rest = try await fixture.run(["transfers", "resume", "--all"])
        #expect(rest.errors == "There is nothing to resume.\n")
    }

    @Test func `all files of a folder are recorded before their turn comes`() async throws {
        let server = try await fixture.serve()
        let folder = fixture.path("many")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        for number in 0..<200 {
            _ = try SampleFile.write("\(folder)/\(number)", byteCount: 10, seed: UInt64(number))
        }
        let proxy = try MessageProxy(
            upstreamPort: server.port,
            MessageRule(
                concerns: { $0.method == "POST" && $0.path.hasPrefix("/uploads/sessions") },
                delay: .seconds(300)))
        let client = try fixture.start(["upload", "-r", folder, "--server", proxy.url])
        let isRecorded = try await eventually(within: .seconds(60)) {
            let list = try await fixture.run(["transfers", "--json"])
            return list.output.split(separator: "\n").count == 200
        }
        #expect(isRecorded)
        client.signal(SIGKILL)
        _ = try await client.wait()
        proxy.reform()
        let resumed = try await fixture.run(["transfers", "resume", "--all"])
        #expect(resumed.termination == .exited(0), "\(resumed.errors)")
        #expect(try await fileCount(server) == 200)
    }

    @Test func `patterns take characters, not bytes`() async throws {
        let server = try await fixture.serve()
        let folder = try makeFolder()
        let plan = try await fixture.run([
            "upload", "-r", folder, "--dry-run", "--include", "[\u{e9}].txt", "--include", "?.txt",
            "--server", server.url,
        ])
        #expect(plan.errors.contains("2 files"))
    }

    @Test func `a failing file leaves the others done`() async throws {
        let server = try await fixture.serve()
        let folder = try makeFolder()
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder)/broken", withDestinationPath: "nothing")
        let finished = try await fixture.run(
            ["upload", "-r", folder, "--follow-links", "--server", server.url])
        #expect(finished.termination == .exited(ExitStatus.someFailed))
        #expect(finished.errors.contains("写真/broken"))
        // The file behind the good link, too.
        #expect(try await fileCount(server) == 6)
    }

    @Test func `names from a server never leave the folder`() async throws {
        let server = try await fixture.serve()
        let sample = try fixture.sample(mebibytes: 0, plus: 10)
        let hostile = [
            "../out", "/etc/kedge", "a/../../out", "a//b", "a/./b", "a/", "..", "link/x", "file",
            // With the mark behind it, the slash is one character.
            "link/\u{301}a/x",
            String(repeating: "n", count: 256),
        ]
        for path in hostile + ["README", "readme", "\u{e9}", "e\u{301}", "fine/x"] {
            let finished = try await fixture.run([
                "upload", sample.path, "--again", "--metadata", "path=\(path)", "--server",
                server.url,
            ])
            #expect(finished.termination == .exited(0), "\(path): \(finished.errors)")
        }
        let folder = fixture.path("there")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let elsewhere = fixture.path("elsewhere")
        try FileManager.default.createDirectory(
            atPath: elsewhere, withIntermediateDirectories: false)
        for name in ["link", "file"] {
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/\(name)", withDestinationPath: elsewhere)
        }
        let finished = try await fixture.run(
            ["download", "--prefix", "", "-o", folder, "--server", server.url])
        #expect(finished.termination == .exited(ExitStatus.someFailed))
        for path in hostile { #expect(finished.errors.contains("kedge: \(path): ")) }
        #expect(finished.errors.contains("16 files: 3 done, 13 failed"))
        #expect(fixture.names(in: elsewhere) == [])
        #expect(!fixture.names(in: fixture.directory).contains("out"))
        let names = Set(fixture.names(in: folder)).filter { !$0.hasPrefix(".") }
        #expect(names == ["link", "file", "fine", "README", "e\u{301}"])
    }

    @Test func `a folder over a link that breaks is complete after the same command`()
        async throws
    {
        let server = try await fixture.serve()
        let folder = fixture.path("folder")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        for number in 0..<6 {
            _ = try SampleFile.write(
                "\(folder)/\(number)", byteCount: 2 << 20, seed: UInt64(number))
        }
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let command = [
            "upload", "-r", folder, "--server", proxy.url, "--chunk-size", "1M",
        ]
        let client = try fixture.start(command)
        try await eventually("some chunks are there") { server.requests.sessionIDs.count >= 4 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        let finished = try await fixture.run(command)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try await fileCount(server) == 6)
        #expect(server.requests.sessionIDs.count == 6)
        #expect(proxy.counts.upByteCount < 16 << 20)
        let destination = fixture.path("there")
        _ = try await fixture.run(
            ["download", "--prefix", "folder", "-o", destination, "--server", server.url])
        for number in 0..<6 {
            #expect(
                try SampleFile.digest(of: "\(destination)/folder/\(number)")
                    == SampleFile.digest(of: "\(folder)/\(number)"))
        }
    }
}
