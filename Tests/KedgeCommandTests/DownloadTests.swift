import Foundation
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// `kedge download` under kills, faults and wrong servers.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DownloadTests {
    let fixture: CommandEnvironment
    let folder: String
    let copy: String

    init() throws {
        fixture = try CommandEnvironment()
        folder = fixture.path("folder")
        copy = folder + "/copy.bin"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
    }

    func command(_ source: String, _ url: String, _ more: String...) -> [String] {
        ["download", source, "-o", copy, "--server", url, "--json"] + more
    }

    private enum Victim {
        case client
        case server
    }

    // R1, R19, R46, R86, R96, R108, R112, R135.
    @Test(arguments: Seeds.all)
    func `a download survives three kills of the client and two of the server`(
        seed: UInt64
    ) async throws {
        var generator = SplitMix64(seed: seed)
        let source = try fixture.sample(mebibytes: 64, plus: 4321, seed: seed)
        var server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 12 << 20))
        let watcher = DestinationWatcher(copy, digest: source.digest)
        let command = command(id, proxy.url)
        var clients = [try fixture.start(command)]
        var confirmed: [(chunks: Set<Int>, requestCount: Int)] = []
        let victims: [Victim] = [.client, .client, .client, .server, .server]
        for (position, victim) in victims.shuffled(using: &generator).enumerated() {
            let first = source.byteCount / 7 * position
            let target = Int.random(
                in: first + 1 << 20...first + source.byteCount / 7, using: &generator)
            try await eventually("\(target) bytes passed") { proxy.counts.downByteCount >= target }
            switch victim {
            case .client:
                let client = clients[clients.count - 1]
                let transfer = try await eventually("it says which transfer it is") {
                    try TransferLine.all(client.output).first?.transferId
                }
                client.signal(SIGKILL)
                #expect(try await client.wait() == .signaled(SIGKILL), "it had ended before")
                try expectHidden(source)
                confirmed.append(
                    (try await fixture.diagnose(transfer).confirmed, proxy.counts.requests.count))
                clients.append(try fixture.start(command))
            case .server:
                server.process.signal(SIGKILL)
                #expect(try await server.process.wait() == .signaled(SIGKILL))
                server = try await fixture.serve()
                proxy.upstreamPort = server.port
            }
        }
        let finished = try await fixture.finish(clients[clients.count - 1])
        try finished.expectCompleted(source)
        let sights = try await watcher.stop()
        #expect(sights.wrongSights == [])
        #expect(fixture.names(in: folder) == ["copy.bin"])
        let ids = try clients.flatMap { try TransferLine.all($0.output).compactMap(\.transferId) }
        #expect(Set(ids).count == 1)
        let requests = proxy.counts.requests
        for (chunks, count) in confirmed {
            let repeated = requests[count...].compactMap(\.range)
                .filter { chunks.contains($0.lowerBound / (4 << 20)) }
            #expect(repeated == [], "confirmed chunks were fetched again")
        }
    }

    private func expectHidden(_ source: SampleFile) throws {
        #expect(!FileManager.default.fileExists(atPath: copy))
        let temporary = try #require(fixture.temporaryFile(in: folder))
        let attributes = try FileManager.default.attributesOfItem(atPath: temporary)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    // R1, R132.
    @Test(arguments: Faults.Cut.allCases)
    func `a download over a link that keeps failing resumes inside its chunks`(
        cut: Faults.Cut
    ) async throws {
        let source = try fixture.sample(mebibytes: 30, plus: 1)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .down, cutsAfter: 300 << 10, cut: cut))
        let finished = try await fixture.run(command(id, proxy.url))
        try finished.expectCompleted(source)
        #expect(try SampleFile.digest(of: copy) == source.digest)
        #expect(proxy.counts.cutCount >= 90)
        let continued = proxy.counts.requests.compactMap(\.range)
            .filter { $0.lowerBound % (4 << 20) != 0 }
        #expect(continued.count >= 60)
        // A reset may discard bytes that the receiver had not read yet.
        if cut == .finish {
            #expect(proxy.counts.downByteCount < source.byteCount * 13 / 10)
        }
    }

    // R16, R93, R137.
    @Test func `only chunks with a flipped bit are fetched again`() async throws {
        let source = try fixture.sample(mebibytes: 60)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .down, flipsEvery: 17 << 20))
        let watcher = DestinationWatcher(copy, digest: source.digest)
        let finished = try await fixture.run(command(id, proxy.url))
        try finished.expectCompleted(source)
        #expect(try await watcher.stop().wrongSights == [])
        let counts = proxy.counts
        #expect(counts.flipCount >= 3)
        #expect(counts.downByteCount < source.byteCount + (counts.flipCount + 1) * (4 << 20))
        let transfer = try #require(try finished.result.transferId)
        let repeated = try await fixture.diagnose(transfer).repeatedChunks
        #expect((1...counts.flipCount).contains(repeated.count), "\(repeated)")
    }

    /// Ways in which an origin reveals another version.
    enum Replacement: CaseIterable {
        case refusedPrecondition
        case rangeOfOther
        case wholeOther
    }

    // R103: the download restarts cleanly and mixes no versions.
    @Test(arguments: Replacement.allCases)
    func `a file that is replaced on the server is downloaded again`(
        replacement: Replacement
    ) async throws {
        let old = SampleFile.bytes(24 << 20, seed: 3)
        let new = try fixture.sample("new", mebibytes: 22, plus: 77, seed: 4)
        let newBytes = SampleFile.bytes(new.byteCount, seed: 4)
        let origin = try RangeServer { head, count in
            if count <= 3 { return .honest(old, etag: "\"old\"", head) }
            guard let range = head.range, head["if-range"] == "\"old\"" else {
                return .honest(newBytes, etag: "\"new\"", head)
            }
            switch replacement {
            case .refusedPrecondition: return .honest(newBytes, etag: "\"new\"", head)
            case .rangeOfOther:
                return .part(
                    range.clamped(to: 0..<newBytes.count), of: newBytes, etag: "\"new\"")
            case .wholeOther:
                return .init(status: 200, fields: ["ETag": "\"new\""], body: newBytes)
            }
        }
        let watcher = DestinationWatcher(copy, digest: new.digest)
        let finished = try await fixture.run(["download", origin.url, "-o", copy, "--json"])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try await watcher.stop().wrongSights == [])
        let transfer = try #require(try finished.result.transferId)
        #expect(try await fixture.diagnose(transfer).remoteChangeCount == 1)
        // The SHA-256 is unknown, so the result must not claim that it was checked.
        #expect(try finished.result.verification == "unverified")
    }

    /// Ways in which an origin misreports its bytes.
    enum Lie: CaseIterable {
        case shiftedRange
        case otherTotal
        case noRange
        case shorterRange
    }

    // R91, R136.
    @Test(arguments: Lie.allCases)
    func `bytes under a wrong Content-Range are never written`(lie: Lie) async throws {
        let content = SampleFile.bytes(16 << 20, seed: 5)
        let expected = try fixture.sample("expected", mebibytes: 16, seed: 5)
        let lieCount = Mutex(0)
        let isHonest = Mutex(false)
        let origin = try RangeServer { head, _ in
            let honest = RangeServer.Answer.honest(content, etag: "\"one\"", head)
            guard let range = head.range, range.contains(9 << 20), !isHonest.withLock({ $0 })
            else { return honest }
            lieCount.withLock { $0 += 1 }
            return Self.lying(lie, range, honest, total: content.count)
        }
        let client = try fixture.start(["download", origin.url, "-o", copy, "--json"])
        try await eventually("the origin lied three times") { lieCount.withLock { $0 } >= 3 }
        let temporary = try #require(fixture.temporaryFile(in: folder))
        let written = try #require(FileManager.default.contents(atPath: temporary))
        #expect(written.range(of: Data(repeating: 0xEE, count: 64)) == nil)
        #expect(!FileManager.default.fileExists(atPath: copy))
        isHonest.withLock { $0 = true }
        let finished = try await fixture.finish(client)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try SampleFile.digest(of: copy) == expected.digest)
    }

    private static func lying(
        _ lie: Lie, _ range: Range<Int>, _ honest: RangeServer.Answer, total: Int
    ) -> RangeServer.Answer {
        var answer = honest
        answer.body = [UInt8](repeating: 0xEE, count: range.count)
        let (first, last) = (range.lowerBound, range.upperBound - 1)
        switch lie {
        case .shiftedRange:
            answer.fields["Content-Range"] = "bytes \(first - 4096)-\(last - 4096)/\(total)"
        case .otherTotal:
            answer.fields["Content-Range"] = "bytes \(first)-\(last)/\(total + 1)"
        case .noRange:
            answer.fields["Content-Range"] = nil
        case .shorterRange:
            answer.fields["Content-Range"] = "bytes \(first)-\(last - 4096)/\(total)"
            answer.body.removeLast(4096)
        }
        return answer
    }

    // R109: a file at the destination belongs to the user.
    @Test func `another file at the destination is kept, and replaced with --overwrite`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 5)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let own = try SampleFile.write(copy, byteCount: 100, seed: 1)
        let refused = try await fixture.run(command(id, server.url))
        #expect(refused.termination == .exited(ExitStatus.usage))
        #expect(try refused.result.errorCode == "DESTINATION_EXISTS")
        #expect(try SampleFile.digest(of: copy) == own.digest)
        #expect(fixture.names(in: folder) == ["copy.bin"])
        let replaced = try await fixture.run(command(id, server.url, "--overwrite"))
        try replaced.expectCompleted(source)
        #expect(try SampleFile.digest(of: copy) == source.digest)
        // If the same file is already there, the command succeeds.
        try await fixture.run(command(id, server.url)).expectCompleted(source)
    }

    /// The moment at which the disk fills up.
    enum Moment: CaseIterable {
        case before
        case during
    }

    // R107, R114.
    @Test(
        .enabled(if: SmallDisk.isAvailable, "mounts: not permitted"), arguments: Moment.allCases)
    func `a full disk is its own error, and the download resumes once there is space`(
        moment: Moment
    ) async throws {
        let disk = try fixture.disk("disk", byteCount: 14 << 20)
        let source = try fixture.sample(mebibytes: 12)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let command = [
            "download", id, "-o", "\(disk)/copy.bin", "--server", proxy.url, "--json",
        ]
        if moment == .before { try SmallDisk.fill(disk) }
        let client = try fixture.start(command)
        if moment == .during {
            try await eventually("some bytes are there") {
                proxy.counts.downByteCount > 8 << 20
            }
            try SmallDisk.fill(disk)
        }
        let failed = try await fixture.finish(client)
        #expect(failed.termination == .exited(ExitStatus.diskFull))
        #expect(try failed.result.errorCode == "DISK_FULL")
        #expect(!FileManager.default.fileExists(atPath: "\(disk)/copy.bin"))
        try SmallDisk.free(disk)
        proxy.faults = Faults()
        let finished = try await fixture.run(command)
        try finished.expectCompleted(source)
        #expect(try finished.result.transferId == failed.result.transferId)
        #expect(try SampleFile.digest(of: "\(disk)/copy.bin") == source.digest)
        #expect(fixture.temporaryFile(in: disk) == nil)
    }

    @Test func `an unknown file id has its own exit status`() async throws {
        let server = try await fixture.serve()
        let unknown = String(repeating: "0", count: 32)
        let finished = try await fixture.run(command(unknown, server.url))
        #expect(finished.termination == .exited(ExitStatus.notFound))
        #expect(try finished.result.errorCode == "FILE_NOT_FOUND")
        #expect(fixture.names(in: folder) == [])
    }

    // R102, R109.
    @Test func `a canceled download leaves nothing behind`() async throws {
        let source = try fixture.sample(mebibytes: 16)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 2 << 20))
        let client = try fixture.start(command(id, proxy.url))
        try await eventually("there is a temporary file") {
            fixture.temporaryFile(in: folder) != nil
        }
        let transfer = try #require(try TransferLine.all(client.output).first?.transferId)
        #expect(try await fixture.run(["transfers", "cancel", transfer]).termination == .exited(0))
        let finished = try await fixture.finish(client, within: .seconds(10))
        #expect(finished.termination != .exited(0))
        #expect(try finished.result.state == "canceled")
        #expect(fixture.names(in: folder) == [])
    }
}
