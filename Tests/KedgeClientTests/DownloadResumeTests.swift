import Foundation
import GRDB
import HTTPTypes
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Bytes that an earlier run left on the disk count only as far as they can be read back.
@Suite(.timeLimit(.minutes(1)))
struct DownloadResumeTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isRange: @Sendable (FakeServer.Seen) -> Bool = { $0.fields[.range] != nil }

    init() throws { fixture = try TransferEnvironment() }

    private func expectCompleted(_ snapshot: TransferSnapshot) {
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
    }

    private var temporaryPath: String {
        get throws {
            fixture.path(try #require(fixture.names().first { $0.hasSuffix(".kedge-part") }))
        }
    }

    /// Runs a download until five of its chunks are there, and stops it.
    private func begin(_ fileID: FileID) async throws -> TransferID {
        let (gate, counter) = (Gate(), Counter())
        fixture.plan(.wait(gate), count: 100) { seen in
            seen.fields[.range] != nil && counter.next() >= 5
        }
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        #expect(
            try await eventually { try await client.transfer(id).bytesTransferred >= 5 * 65_536 })
        run.cancel()
        _ = try await run.value
        gate.open()
        fixture.server.state.withLock { $0.faults = [] }
        return id
    }

    @Test func `a diagnosis has the bytes that were read again for the hash`() async throws {
        let file = fixture.addFile(bytes)
        let client = try await fixture.client { $0.connections = 1 }
        let whole = try await client.enqueueDownload(.file(file), to: fixture.path("whole.bin"))
        _ = try await client.run(whole)
        #expect(try await client.diagnose(whole).readBackBytes == 0)
        let upload = try await client.enqueueUpload(path: fixture.path("whole.bin"))
        _ = try await client.run(upload)
        #expect(try await client.diagnose(upload).readBackBytes == 0)

        let resumed = try await begin(file)
        expectCompleted(try await client.run(resumed))
        // The chunks of the first run, at least.
        let readBack = try await client.diagnose(resumed).readBackBytes
        #expect(try #require(readBack) >= 5 * 65_536)
    }

    @Test func `bytes that were damaged between two runs are noticed`() async throws {
        let id = try await begin(fixture.addFile(bytes))
        let path = try temporaryPath
        let file = try POSIXFileSystem().open(path, .readWrite)
        try [bytes[1000] ^ 1].withUnsafeBytes { try file.write($0, at: 1000) }
        try file.close()
        let snapshot = try await (try await fixture.client()).run(id)
        expectCompleted(snapshot)
        #expect(snapshot.integrityFailureCount == 1)
    }

    @Test func `a stopped process that wakes cannot write into the finished file`() async throws {
        let id = try await begin(fixture.addFile(bytes))
        let sleeper = try POSIXFileSystem().open(try temporaryPath, .readWrite)
        try sleeper.lockExclusively()
        expectCompleted(try await (try await fixture.client()).run(id))
        try [UInt8](repeating: 0, count: 1000).withUnsafeBytes { try sleeper.write($0, at: 0) }
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
        #expect(try fixture.names() == ["out.bin", "state"])
    }

    @Test func `space that unconfirmed bytes already hold is not required again`() async throws {
        let fileID = fixture.addFile(bytes)
        let gate = Gate()
        fixture.plan(.rewrite { $0.cutsAfter = 40_960 }, count: 4) { seen in
            // Only the first attempt at a chunk starts at its first byte.
            let start = seen.fields[.range]?.dropFirst("bytes=".count).prefix { $0 != "-" }
            return start.flatMap { Int($0) }.map { $0 % 65_536 == 0 } ?? false
        }
        fixture.plan(.wait(gate), count: 100, when: isRange)
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        #expect(try await eventually { gate.arrivalCount == 4 })
        run.cancel()
        _ = try await run.value
        gate.open()
        fixture.server.state.withLock { $0.faults = [] }
        fixture.files.setAvailable(440_000)
        expectCompleted(try await (try await fixture.client()).run(id))
    }

    @Test func `a destination file that changed after its promotion is not taken for the download`()
        async throws
    {
        let fileID = fixture.addFile(bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.file(fileID), to: fixture.path("out.bin"))
        expectCompleted(try await client.run(id))
        try await client.store.transaction("test") { database in
            try database.execute(
                sql: "UPDATE download_transfer SET state = 'queued', verification = NULL")
        }
        let file = try POSIXFileSystem().open(fixture.path("out.bin"), .readWrite)
        try [bytes[5] ^ 1].withUnsafeBytes { try file.write($0, at: 5) }
        let snapshot = try await client.run(id)
        #expect(snapshot.errorCode == .destinationExists)
    }

    @Test func `a repeated download command follows its newest options`() async throws {
        let fileID = fixture.addFile(bytes)
        try fixture.write("out.bin", [1, 2, 3])
        let client = try await fixture.client()
        func run(_ options: DownloadOptions) async throws -> TransferSnapshot {
            let id = try await client.enqueueDownload(
                .file(fileID), to: fixture.path("out.bin"), options: options)
            return try await client.run(id)
        }
        let refused = try await run(DownloadOptions())
        #expect(refused.errorCode == .destinationExists)
        let wrong = DownloadOptions(
            overwrites: true, expectedSHA256: SHA256Hasher.digest(of: [1]))
        let mismatched = try await run(wrong)
        #expect(mismatched.id == refused.id)
        #expect(mismatched.errorCode == .integrityMismatch)
        expectCompleted(try await run(DownloadOptions(overwrites: true)))
    }

    @Test func `a body without a length that ends early is not taken for complete`() async throws {
        let plain = FakeServer.Plain(bytes: bytes, servesRanges: false)
        fixture.server.state.withLock { $0.plain["x"] = plain }
        fixture.plan(
            .rewrite { reply in
                reply.fields[.contentLength] = nil
                reply.body = Array(reply.body.prefix(300_000))
            }
        ) { $0.method == "GET" && $0.fields[.range] == nil }
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(
            .url(FakeServer.base + "/plain/x"), to: fixture.path("out.bin"))
        expectCompleted(try await client.run(id))
    }

    @Test func `a missing destination folder is a usage error`() async throws {
        let client = try await fixture.client()
        await #expect(throws: TransferError(.usage, operation: "")) {
            try await client.enqueueDownload(.file(.random()), to: fixture.path("none/out.bin"))
        }
    }
}
