import Foundation
import GRDB
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DownloadTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isRange: @Sendable (FakeServer.Seen) -> Bool = { $0.fields[.range] != nil }

    init() throws { fixture = try TransferEnvironment() }

    private func download(
        _ client: TransferClient, _ reference: RemoteReference,
        options: DownloadOptions = DownloadOptions()
    ) async throws -> TransferSnapshot {
        let id = try await client.enqueueDownload(
            reference, to: fixture.path("out.bin"), options: options)
        return try await client.run(id)
    }

    private func addPlain(_ change: (inout FakeServer.Plain) -> Void = { _ in }) -> RemoteReference
    {
        var plain = FakeServer.Plain(bytes: bytes, etag: "\"v1\"")
        change(&plain)
        let resource = plain
        fixture.server.state.withLock { $0.plain["x"] = resource }
        return .url(FakeServer.base + "/plain/x")
    }

    private func expectCompleted(
        _ snapshot: TransferSnapshot, _ verification: Verification = .sha256
    ) throws {
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        #expect(snapshot.verification == verification)
        // Compared apart, so that a failure does not print hundreds of thousands of numbers.
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
        #expect(snapshot.sha256 == SHA256Hasher.digest(of: bytes))
        #expect(try fixture.names().filter { $0.hasSuffix(".kedge-part") }.isEmpty)
    }

    // R83–R87, R96, R98, R99.
    @Test func `a file arrives in verified chunks and gets its name at the end`() async throws {
        let id = fixture.addFile(bytes)
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
        let ranges = fixture.seen("GET", "/files/").filter(isRange)
        #expect(ranges.count == 10)
        for range in ranges {
            #expect(range.fields[.ifRange] == "\"\(SHA256Hasher.digest(of: bytes).hex)\"")
            #expect(range.fields[.acceptEncoding] == "identity")
        }
        #expect(ranges.contains { $0.fields[.range] == "bytes=589824-599999" })
    }

    @Test(arguments: [0, 1, 65_536, 131_072])
    func `files with sizes at the edges of chunks arrive`(size: Int) async throws {
        let bytes = TransferEnvironment.bytes(size)
        let client = try await fixture.client()
        let snapshot = try await download(client, .file(fixture.addFile(bytes)))
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
    }

    // R132: an interrupted range continues where it stopped.
    @Test func `a download over a link that dies every few kilobytes finishes and repeats no byte`()
        async throws
    {
        let id = fixture.addFile(bytes)
        fixture.plan(.rewrite { $0.cutsAfter = 20_000 }, count: 25, when: isRange)
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
        let asked = fixture.seen("GET", "/files/").compactMap { $0.fields[.range] }
        #expect(asked.contains("bytes=20000-65535"))
        #expect(Set(asked).count == asked.count)
    }

    // R136.
    @Test func `an answer with another range than requested is never written`() async throws {
        let id = fixture.addFile(bytes)
        fixture.plan(
            .rewrite { $0.fields[.contentRange] = "bytes 0-65535/600000" }, count: 3
        ) { $0.fields[.range] == "bytes=131072-196607" }
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
    }

    @Test func `a server that keeps answering with wrong ranges fails the transfer`() async throws {
        let id = fixture.addFile(bytes)
        fixture.plan(
            .rewrite { $0.fields[.contentRange] = "bytes 7-9/600000" }, count: 10_000, when: isRange
        )
        let snapshot = try await download(try await fixture.client(), .file(id))
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .protocolViolation)
        #expect(fixture.read("out.bin")?.count == nil)
    }

    // R93, R137.
    @Test func `one damaged chunk is fetched again alone`() async throws {
        let id = fixture.addFile(bytes)
        fixture.plan(.rewrite { $0.body[500] ^= 1 }) { $0.fields[.range] == "bytes=131072-196607" }
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
        #expect(fixture.seen("GET", "/files/").filter(isRange).count == 11)
    }

    // R95: a download that cannot heal ends soon and keeps its verified chunks.
    @Test func `a chunk that stays damaged ends the download after three fetches`() async throws {
        let id = fixture.addFile(bytes)
        let range = "bytes=131072-196607"
        fixture.plan(.rewrite { $0.body[500] ^= 1 }, count: 1000) { $0.fields[.range] == range }
        let client = try await fixture.client()
        let failed = try await download(client, .file(id))
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .chunkHashMismatch)
        #expect(failed.message.contains("131072"))
        #expect(fixture.seen("GET", "/files/").filter { $0.fields[.range] == range }.count == 3)
        #expect(fixture.delays.withLock { $0.reduce(.zero, +) } <= .seconds(20))
        let kept = failed.bytesTransferred
        #expect(kept > 0)
        fixture.server.state.withLock { ($0.faults, $0.seen) = ([], []) }
        try expectCompleted(try await download(client, .file(id)))
        let asked = fixture.seen("GET", "/files/").filter(isRange).count
        #expect(asked <= 10 - Int(kept / 65_536))
    }

    // R137: a link that damages bytes damages different ones each time.
    @Test func `a chunk that is damaged differently each time is fetched until it is right`()
        async throws
    {
        let id = fixture.addFile(bytes)
        let range = "bytes=131072-196607"
        for position in 1...5 {
            fixture.plan(.rewrite { $0.body[position] ^= 1 }) { $0.fields[.range] == range }
        }
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
        #expect(fixture.seen("GET", "/files/").filter { $0.fields[.range] == range }.count == 6)
    }

    @Test func `verified chunks are kept when the file is not the expected one`()
        async throws
    {
        let id = fixture.addFile(bytes)
        let client = try await fixture.client()
        let options = DownloadOptions(expectedSHA256: SHA256Hasher.digest(of: [1]))
        let failed = try await download(client, .file(id), options: options)
        #expect(failed.errorCode == .integrityMismatch)
        #expect(failed.bytesTransferred == Int64(bytes.count))
        #expect(fixture.seen("GET", "/files/").filter(isRange).count == 10)
        try expectCompleted(try await download(client, .file(id)))
        #expect(fixture.seen("GET", "/files/").filter(isRange).count == 10)
    }

    // R154.
    @Test(arguments: [ErrorCode.fileNotFound, .fileGone])
    func `a file that is deleted on the server during its download leaves nothing behind`(
        code: ErrorCode
    ) async throws {
        let id = fixture.addFile(bytes)
        fixture.plan(.answer(Reply(problem: code)), count: 1000) {
            $0.fields[.range] == "bytes=589824-599999"
        }
        let client = try await fixture.client()
        let failed = try await download(client, .file(id))
        #expect(failed.state == .failed)
        #expect(failed.errorCode == code)
        #expect(try fixture.names() == ["state"])
        #expect(failed.bytesTransferred == 0)
    }

    // R94, R95.
    @Test func `without chunk digests a damaged file is fetched anew once`() async throws {
        let id = fixture.addFile(bytes)
        fixture.server.state.withLock { $0.offersChunkDigests = false }
        fixture.plan(.rewrite { $0.body[500] ^= 1 }, when: isRange)
        let snapshot = try await download(try await fixture.client(), .file(id))
        try expectCompleted(snapshot)
        #expect(snapshot.integrityFailureCount == 1)
    }

    // R95, R121.
    @Test func `a file that stays damaged fails and leaves nothing behind`() async throws {
        let id = fixture.addFile(bytes)
        fixture.server.state.withLock { $0.offersChunkDigests = false }
        fixture.plan(.rewrite { $0.body[500] ^= 1 }, count: 1000, when: isRange)
        let client = try await fixture.client()
        let snapshot = try await download(client, .file(id))
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .integrityMismatch)
        #expect(try fixture.names() == ["state"])
        // R110.
        #expect(snapshot.offersRetryFromScratch)
        fixture.server.state.withLock { $0.faults = [] }
        try await client.retry(snapshot.id, fromScratch: true)
        #expect(try await !client.transfer(snapshot.id).offersRetryFromScratch)
        try expectCompleted(try await client.run(snapshot.id))
    }

    // R103.
    @Test func `a file that changes on the server is fetched anew, never mixed`() async throws {
        let reference = addPlain { $0.bytes = TransferEnvironment.bytes(600_000, seed: 3) }
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.fields[.range] == "bytes=327680-393215" }
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let newer = bytes
        fixture.server.state.withLock {
            $0.plain["x"] = FakeServer.Plain(bytes: newer, etag: "\"v2\"")
        }
        gate.open()
        let snapshot = try await run.value
        try expectCompleted(snapshot, .unverified)
        #expect(try await client.diagnose(id).remoteChangeCount == 1)
    }

    @Test func `a download fails as changed when its file keeps changing`() async throws {
        let reference = addPlain()
        fixture.plan(
            .rewrite { $0 = Reply(status: 412) }, count: 1000
        ) { $0.fields[.ifMatch] != nil }
        let snapshot = try await download(try await fixture.client(), reference)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .remoteChanged)
    }

    // R1, R86, R135.
    @Test(arguments: [1, 5, 9])
    func `after a kill the next client asks only for what is missing`(
        chunkCount: Int
    ) async throws {
        let fileID = fixture.addFile(bytes)
        let (gate, counter) = (Gate(), Counter())
        fixture.plan(.wait(gate), count: 100) { seen in
            seen.fields[.range] != nil && counter.next() >= chunkCount
        }
        let id: TransferID
        do {
            let client = try await fixture.client()
            id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
            let run = Task { try await client.run(id) }
            await gate.waitForArrival()
            #expect(
                try await eventually {
                    try await client.transfer(id).bytesTransferred >= (chunkCount - 1) * 65_536
                })
            // R46: an unfinished file is not visible at the destination.
            #expect(fixture.read("out.bin")?.count == nil)
            run.cancel()
            _ = try await run.value
        }
        gate.open()
        let confirmed: Int64
        let next = try await fixture.client()
        confirmed = try await next.transfer(id).bytesTransferred
        fixture.server.state.withLock {
            $0.faults = []
            $0.seen = []
        }
        #expect(
            try await next.enqueueDownload(.file(fileID), to: fixture.path("out.bin")) == id)
        try expectCompleted(try await next.run(id))
        let asked = fixture.seen("GET", "/files/").filter(isRange).count
        #expect(asked == 10 - Int(confirmed / 65_536))
    }

    // R96: a kill between the rename and its record.
    @Test func `a promoted file is recognised after a crash`() async throws {
        let fileID = fixture.addFile(bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        try expectCompleted(try await client.run(id))
        try await client.store.transaction("test") { database in
            try database.execute(
                sql: "UPDATE download_transfer SET state = 'queued', verification = NULL")
        }
        fixture.server.state.withLock { $0.seen = [] }
        try expectCompleted(try await client.run(id))
        #expect(fixture.seen("GET", "").isEmpty)
    }

    // R97, R114, R115.
    @Test func `a full disk is noticed before the first byte, and the download continues later`()
        async throws
    {
        let id = fixture.addFile(bytes)
        fixture.files.setAvailable(1000)
        let client = try await fixture.client()
        let failed = try await download(client, .file(id))
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .diskFull)
        fixture.files.setAvailable(nil)
        try expectCompleted(try await download(client, .file(id)))
    }

    @Test func `a download on a disk that fills up keeps the bytes that arrived`() async throws {
        let fileID = fixture.addFile(bytes)
        fixture.files.setWritable(300_000)
        let client = try await fixture.client()
        let failed = try await download(client, .file(fileID))
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .diskFull)
        #expect(try fixture.names().contains { $0.hasSuffix(".kedge-part") })
        fixture.files.setWritable(.max)
        let before = try await client.transfer(failed.id).bytesTransferred
        #expect(before > 0)
        fixture.server.state.withLock { $0.seen = [] }
        try expectCompleted(try await download(client, .file(fileID)))
        let asked = fixture.seen("GET", "/files/").filter(isRange).count
        #expect(asked == 10 - Int(before / 65_536))
    }

    // R116.
    @Test func `a failed download on a full disk releases its space if configured so`() async throws
    {
        let fileID = fixture.addFile(bytes)
        fixture.files.setWritable(300_000)
        let client = try await fixture.client { $0.keepsPartialDownloadsOnFullDisk = false }
        let failed = try await download(client, .file(fileID))
        #expect(failed.errorCode == .diskFull)
        #expect(try fixture.names() == ["state"])
    }

    // R116.
    @Test(arguments: [(Int64(9999), true), (10_000, false)])
    func `a failed download on a full disk releases its space below the critical limit`(
        available: Int64, isGivenBack: Bool
    ) async throws {
        let fileID = fixture.addFile(bytes)
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.fields[.range] == "bytes=0-65535" }
        let client = try await fixture.client { $0.criticalFreeByteCount = 10_000 }
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        // The file fitted at the start; then other programs filled the disk.
        #expect(
            try await eventually { try await client.transfer(id).bytesTransferred > 300_000 })
        fixture.files.setWritable(0)
        fixture.files.setAvailable(available)
        gate.open()
        let failed = try await run.value
        #expect(failed.errorCode == .diskFull)
        #expect(try fixture.names().contains { $0.hasSuffix(".kedge-part") } != isGivenBack)
        fixture.files.setWritable(.max)
        fixture.files.setAvailable(nil)
        try expectCompleted(try await download(client, .file(fileID)))
    }

    // R121: a file that arrives damaged is requested in smaller chunks.
    @Test func `after an integrity failure the chunks of a download are half as large`()
        async throws
    {
        let large = TransferEnvironment.bytes(3 << 20)
        let reference = addPlain {
            $0.bytes = large
            $0.digest = SHA256Hasher.digest(of: large)
        }
        fixture.plan(.rewrite { $0.body[500] ^= 1 }) { $0.fields[.range] == "bytes=0-1048575" }
        let client = try await fixture.client { $0.chunkSize = 1 << 20 }
        let snapshot = try await download(client, reference)
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        let isWhole = fixture.read("out.bin") == large
        #expect(isWhole)
        let ranges = fixture.seen("GET", "/plain/").filter(isRange).map { $0.fields[.range] ?? "" }
        #expect(ranges.count == 3 + 6)
        #expect(ranges.contains("bytes=0-524287"))
        #expect(try await client.diagnose(snapshot.id).chunkSize == 512 << 10)
    }

    // R88.
    @Test func `a download works from any server with ranges and is unverified without a hash`()
        async throws
    {
        let reference = addPlain()
        try expectCompleted(try await download(try await fixture.client(), reference), .unverified)
        let ranges = fixture.seen("GET", "/plain/").filter(isRange)
        #expect(ranges.count == 10)
    }

    @Test func `a digest that the server announces verifies the file`() async throws {
        let reference = addPlain { $0.digest = SHA256Hasher.digest(of: bytes) }
        try expectCompleted(try await download(try await fixture.client(), reference))
    }

    @Test func `a hash given by the caller outranks the server's`() async throws {
        let reference = addPlain { $0.digest = SHA256Hasher.digest(of: bytes) }
        let options = DownloadOptions(expectedSHA256: SHA256Hasher.digest(of: [1]))
        let snapshot = try await download(try await fixture.client(), reference, options: options)
        #expect(snapshot.errorCode == .integrityMismatch)
        #expect(fixture.read("out.bin")?.count == nil)
    }

    @Test(arguments: [true, false])
    func `a file without ranges is read in one request, and from the start after a drop`(
        announcesLength: Bool
    ) async throws {
        let reference = addPlain {
            $0.servesRanges = false
            $0.announcesLength = announcesLength
        }
        fixture.plan(.rewrite { $0.cutsAfter = 300_000 }, count: 2) {
            $0.method == "GET" && $0.fields[.range] == nil
        }
        try expectCompleted(try await download(try await fixture.client(), reference), .unverified)
    }

    @Test func `a weak ETag is never sent in If-Range`() async throws {
        let reference = addPlain { $0.etag = "W/\"v1\"" }
        try expectCompleted(try await download(try await fixture.client(), reference), .unverified)
        #expect(fixture.seen("GET", "/plain/").allSatisfy { $0.fields[.ifRange] == nil })
    }

    @Test func `a complete body in answer to a range request is not written at an offset`()
        async throws
    {
        let reference = addPlain()
        fixture.plan(
            .rewrite { [bytes] reply in
                reply.status = 200
                reply.body = bytes
                reply.fields[.contentRange] = nil
                reply.fields[.contentLength] = "600000"
            }
        ) { $0.fields[.range] == "bytes=131072-196607" }
        try expectCompleted(try await download(try await fixture.client(), reference), .unverified)
    }

    @Test func `an existing file is replaced only if the options allow it`() async throws {
        let id = fixture.addFile(bytes)
        try fixture.write("out.bin", [1, 2, 3])
        let client = try await fixture.client()
        let refused = try await download(client, .file(id))
        #expect(refused.state == .failed)
        #expect(refused.errorCode == .destinationExists)
        #expect(fixture.read("out.bin") == [1, 2, 3])
        try await client.cancel(refused.id)
        let options = DownloadOptions(overwrites: true)
        try expectCompleted(try await download(client, .file(id), options: options))
    }

    @Test func `a download whose file is already at the destination succeeds`() async throws {
        let id = fixture.addFile(bytes)
        try fixture.write("out.bin", bytes)
        try expectCompleted(try await download(try await fixture.client(), .file(id)))
        #expect(fixture.seen("GET", "/files/").filter(isRange).isEmpty)
    }

    @Test func `a redirect to another origin never carries the token`() async throws {
        let bytes = bytes
        let reference = addPlain { $0.redirect = "http://elsewhere.test/plain/y" }
        fixture.server.state.withLock {
            $0.plain["y"] = FakeServer.Plain(bytes: bytes, etag: "\"v1\"")
        }
        try expectCompleted(
            try await download(try await fixture.client(), reference), .unverified)
        for seen in fixture.server.state.withLock({ $0.seen }) {
            let isElsewhere = seen.url.hasPrefix("http://elsewhere.test/")
            #expect((seen.fields[.authorization] == nil) == isElsewhere)
        }
    }

    @Test func `a redirect from HTTPS to HTTP is not followed`() async throws {
        _ = addPlain { $0.redirect = "http://kedge.test/plain/y" }
        let refused = try await download(
            try await fixture.client(), .url("https://kedge.test/plain/x"))
        #expect(refused.errorCode == .redirected)
        let visited = fixture.server.state.withLock { $0.seen.map(\.url) }
        #expect(visited.allSatisfy { $0.hasPrefix("https://") })
    }

    @Test func `a request without credentials follows a redirect to another origin`() async throws {
        let bytes = bytes
        fixture.server.state.withLock { state in
            state.plain["x"] = FakeServer.Plain(
                bytes: [], redirect: "http://elsewhere.test/plain/y")
            state.plain["y"] = FakeServer.Plain(bytes: bytes, etag: "\"v1\"")
        }
        let client = try await fixture.client { $0.token = nil }
        let reference = RemoteReference.url(FakeServer.base + "/plain/x")
        try expectCompleted(try await download(client, reference), .unverified)
    }

    @Test func `a download of a missing file fails with the server's code`() async throws {
        let client = try await fixture.client()
        let snapshot = try await download(client, .file(.random()))
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .fileNotFound)
    }

    // R130.
    @Test func `a name from the server cannot leave the directory`() async throws {
        let id = fixture.addFile(bytes, name: "../../evil")
        let client = try await fixture.client()
        let transfer = try await client.enqueueDownload(.file(id), to: fixture.directory)
        let snapshot = try await client.run(transfer)
        #expect(snapshot.path == fixture.path("evil"))
    }

    // R102.
    @Test func `cancelling a download removes its temporary file`() async throws {
        let fileID = fixture.addFile(bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), count: 100, when: isRange)
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try await client.cancel(id)
        #expect(try await run.value.state == .canceled)
        #expect(try await eventually { try fixture.names() == ["state"] })
    }
}
