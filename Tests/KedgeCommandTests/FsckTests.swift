import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `kedge fsck` and `kedge scrub` on the data of a real service.
@Suite(.timeLimit(.minutes(3)))
struct FsckTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func check(_ command: String, _ arguments: [String] = []) async throws -> Finished {
        try await fixture.run(
            [command, "--data", fixture.path("data"), "--json"] + arguments,
            environment: ["TMPDIR": fixture.directory])
    }

    private func findings(_ finished: Finished) throws -> [FindingLine] {
        try FindingLine.all(finished.output).filter { $0.type == "finding" }
    }

    /// The state after a kill, with the proxy whose address the upload knows.
    private struct Interrupted {
        var source: SampleFile
        var proxy: FaultyProxy
        var acknowledged: Set<Int>
    }

    /// Kills a service that has one file and half an upload.
    private func interrupted() async throws -> Interrupted {
        let server = try await fixture.serve()
        let file = try fixture.sample("file.bin", mebibytes: 9, seed: 3)
        _ = try await fixture.upload(file, to: server.url)
        let source = try fixture.sample(mebibytes: 64)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let client = try fixture.start(["upload", source.path, "--server", proxy.url, "--quiet"])
        try await eventually("chunks are acknowledged") {
            let created = server.requests.created
            return created.count > 4 && created[1] != nil
        }
        server.process.end()
        client.end()
        return Interrupted(
            source: source, proxy: proxy, acknowledged: Set(server.requests.created.keys))
    }

    /// The largest file below a part of the data directory.
    private func largest(below part: String) throws -> String {
        let files = Listing(fixture.path("data/\(part)")).files
        guard let largest = files.max(by: { $0.byteCount < $1.byteCount }) else {
            throw TestFailure("nothing in \(part)")
        }
        return fixture.path("data/\(part)/\(largest.path)")
    }

    private func flip(_ path: String, at offset: UInt64) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: offset)
        let byte = try file.read(upToCount: 1)?.first ?? 0
        try file.seek(toOffset: offset)
        try file.write(contentsOf: [~byte])
        try file.close()
    }

    @Test(arguments: ["fsck", "scrub"])
    func `a check runs beside a service, and a repair is refused`(command: String) async throws {
        let server = try await fixture.serve()
        _ = try await fixture.upload(try fixture.sample("file.bin", mebibytes: 3), to: server.url)
        let beside = try await check(command)
        #expect(beside.termination == .exited(ExitStatus.success), "\(beside.errors)")
        #expect(try FindingLine.all(beside.output).map(\.type) == ["summary"])
        try flip(try largest(below: "blobs"), at: 1_000_000)
        #expect(
            try await check(command).termination
                == .exited(command == "scrub" ? ExitStatus.integrity : ExitStatus.success))
        let refused = try await check(command, ["--repair"])
        #expect(refused.termination == .exited(ExitStatus.busy))
        #expect(refused.output == "")
        #expect(refused.errors.contains(fixture.path("data")))
        try flip(try largest(below: "blobs"), at: 1_000_000)
        server.process.end()
        let finished = try await check(command)
        #expect(finished.termination == .exited(ExitStatus.success), "\(finished.errors)")
        let lines = try FindingLine.all(finished.output)
        #expect(lines.map(\.type) == ["summary"])
        #expect(lines.first?.clean == true)
    }

    /// R2, R24: an upload that damage and a kill interrupted completes with the right bytes.
    @Test func `only damaged chunks are sent again after a repair`() async throws {
        let left = try await interrupted()
        #expect(try await check("scrub").termination == .exited(ExitStatus.success))
        try flip(try largest(below: "staging"), at: 5_000_000)
        #expect(try await check("fsck").termination == .exited(ExitStatus.success))
        let damaged = try await check("scrub")
        #expect(damaged.termination == .exited(ExitStatus.integrity))
        #expect(try findings(damaged).map(\.kind) == ["chunkDamaged"])
        #expect(try findings(damaged).first?.chunks == [[1, 1]])
        let repaired = try await check("scrub", ["--repair"])
        #expect(repaired.termination == .exited(ExitStatus.success), "\(repaired.errors)")
        #expect(try findings(repaired).allSatisfy { $0.repaired == true })
        let server = try await fixture.serve()
        left.proxy.upstreamPort = server.port
        left.proxy.faults = Faults()
        let finished = try await fixture.run(
            ["upload", left.source.path, "--server", left.proxy.url, "--json"])
        try finished.expectCompleted(left.source)
        #expect(left.acknowledged.intersection(server.requests.created.keys) == [1])
        try await fixture.expectServed(
            left.source, id: finished.result.remoteFileId, at: server.url)
    }

    /// Includes what SQLite and the file system would change by themselves: side files, times,
    /// directories.
    @Test func `a check without a repair changes nothing, whatever it finds`() async throws {
        _ = try await interrupted()
        try flip(try largest(below: "blobs"), at: 1_000_000)
        let manager = FileManager.default
        let key = String(repeating: "ab", count: 16)
        for (name, content) in [
            ("staging/ab/\(key)", "orphan"), ("blobs/stray", "stray"),
            ("quarantine/\(key).1", "left"),
        ] {
            let path = fixture.path("data/\(name)")
            try manager.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true)
            try content.write(toFile: path, atomically: false, encoding: .utf8)
        }
        let before = Listing(fixture.path("data"))
        #expect(before.entries.contains { $0.path == "kedge.sqlite-wal" }, "killed, not closed")
        for (command, more) in [("fsck", []), ("scrub", ["blobDamaged"])] {
            let finished = try await check(command)
            #expect(finished.termination == .exited(ExitStatus.integrity), "\(finished.errors)")
            #expect(
                Set(try findings(finished).compactMap(\.kind))
                    == Set(["stagingOrphaned", "nameUnknown", "quarantined"] + more))
            #expect(Listing(fixture.path("data")) == before)
        }
        #expect(!fixture.names(in: fixture.directory).contains { $0.hasPrefix("kedge-check") })
        let repaired = try await check("fsck", ["--repair"])
        #expect(repaired.termination == .exited(ExitStatus.integrity), "one is left alone")
        let kept = fixture.path("data/quarantine/\(key).2")
        #expect(try String(contentsOfFile: kept, encoding: .utf8) == "orphan")
    }

    /// With an empty database, everything would be an orphan.
    @Test(arguments: [false, true])
    func `a data directory without its database is refused and left unchanged`(isEmpty: Bool)
        async throws
    {
        _ = try await interrupted()
        for suffix in ["", "-wal", "-shm"] {
            try FileManager.default.removeItem(atPath: fixture.path("data/kedge.sqlite\(suffix)"))
        }
        if isEmpty { try Data().write(to: URL(fileURLWithPath: fixture.path("data/kedge.sqlite"))) }
        let before = Listing(fixture.path("data"))
        for arguments in [[], ["--repair"]] {
            let finished = try await check("fsck", arguments)
            #expect(finished.termination == .exited(ExitStatus.failure))
            #expect(finished.output == "")
            #expect(Listing(fixture.path("data")) == before)
        }
    }

    @Test(arguments: [[], ["--repair"]])
    func `a damaged database is reported, and nothing is changed`(
        arguments: [String]
    ) async throws {
        _ = try await interrupted()
        try FileManager.default.removeItem(atPath: fixture.path("data/kedge.sqlite-wal"))
        let noise = Data(repeating: 0x5A, count: 8192)
        try noise.write(to: URL(fileURLWithPath: fixture.path("data/kedge.sqlite")))
        let before = Listing(fixture.path("data"))
        let finished = try await check("fsck", arguments)
        #expect(finished.termination == .exited(ExitStatus.integrity))
        #expect(try findings(finished).map(\.kind) == ["databaseDamaged"])
        #expect(Listing(fixture.path("data")) == before)
    }

    @Test func `an interrupted scrub ends and leaves nothing behind`() async throws {
        _ = try await interrupted()
        let process = try fixture.start(
            ["scrub", "--data", fixture.path("data"), "--rate", "65536"],
            environment: ["TMPDIR": fixture.directory])
        try await eventually("it reads") {
            fixture.names(in: fixture.directory).contains { $0.hasPrefix("kedge-check") }
        }
        try await eventually("it handles signals") { handles(SIGINT, process.id) }
        process.signal(SIGINT)
        let ended = try await process.wait(within: .seconds(20))
        #expect(ended == .exited(ExitStatus.interrupted))
        #expect(!fixture.names(in: fixture.directory).contains { $0.hasPrefix("kedge-check") })
        #expect(try await check("fsck").termination == .exited(ExitStatus.success))
    }

    /// Whether the process handles the signal. Before that it ignores the signal, which would be
    /// lost.
    private func handles(_ signal: Int32, _ id: pid_t) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)) ?? ""
        let caught = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
        let mask = UInt64(caught?.split(separator: "\t").last ?? "0", radix: 16) ?? 0
        return mask & (1 << UInt64(signal - 1)) != 0
    }

    @Test(arguments: [
        ["scrub", "--rate", "0"], ["scrub", "--rate", "fast"], ["fsck", "--rate", "1"],
    ])
    func `wrong options of a check are refused`(arguments: [String]) async throws {
        let finished = try await fixture.run(arguments + ["--data", fixture.path("data")])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(fixture.names(in: fixture.path("data")) == [])
    }

    @Test func `a missing data directory is refused and not created`() async throws {
        for arguments in [[], ["--repair"]] {
            let finished = try await check("fsck", arguments)
            #expect(finished.termination == .exited(ExitStatus.failure))
            #expect(!FileManager.default.fileExists(atPath: fixture.path("data")))
        }
    }
}

/// One object of `fsck --json`.
private struct FindingLine: Decodable {
    var version: Int
    var type: String
    var kind: String?
    var chunks: [[Int]]?
    var repaired: Bool?
    var clean: Bool?

    static func all(_ output: String) throws -> [FindingLine] {
        let lines = try output.split(separator: "\n").map {
            try JSONDecoder().decode(FindingLine.self, from: Data($0.utf8))
        }
        guard lines.allSatisfy({ $0.version == 1 }) else { throw TestFailure("another version") }
        return lines
    }
}

/// Everything below a directory: names, kinds, modes, times, and the content of files.
private struct Listing: Equatable {
    struct Entry: Equatable {
        var path: String
        var mode: UInt32
        var modifiedSeconds: Int
        var modifiedNanoseconds: Int
        var inode: UInt
        var byteCount: Int64
        var digest: SHA256Digest?
    }
    var entries: [Entry]
    var files: [Entry] { entries.filter { $0.digest != nil } }

    init(_ directory: String) {
        let names = FileManager.default.enumerator(atPath: directory)?.allObjects as? [String] ?? []
        entries = (names.sorted() + ["."]).map { name in
            var record = stat()
            lstat("\(directory)/\(name)", &record)
            let isFile = record.st_mode & S_IFMT == S_IFREG
            return Entry(
                path: name, mode: record.st_mode, modifiedSeconds: record.st_mtim.tv_sec,
                modifiedNanoseconds: record.st_mtim.tv_nsec, inode: UInt(record.st_ino),
                byteCount: Int64(record.st_size),
                // A file that disappears meanwhile has no digest, and so differs.
                digest: isFile ? try? SampleFile.digest(of: "\(directory)/\(name)") : nil)
        }
    }
}
