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

/// An interrupted chunk continues where it stopped, also in another process.
@Suite(.timeLimit(.minutes(1)))
struct DownloadPartialTests {
    private static let chunkSize = 65_536
    /// Bytes that arrive of each of the first four chunks.
    private static let part = 40_960
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)

    init() throws { fixture = try TransferEnvironment() }

    private func addPlain(_ bytes: [UInt8], etag: String = "\"v1\"") -> RemoteReference {
        fixture.server.state.withLock { $0.plain["x"] = FakeServer.Plain(bytes: bytes, etag: etag) }
        return .url(FakeServer.base + "/plain/x")
    }

    /// Runs a download until a part of each of four chunks is there.
    ///
    /// - Parameter body: Called before the run is stopped.
    private func begin(
        _ reference: RemoteReference,
        _ body: (TransferClient, TransferID) async throws -> Void = { _, _ in }
    ) async throws -> TransferID {
        let gate = Gate()
        fixture.plan(.rewrite { $0.cutsAfter = Self.part }, count: 4) { seen in
            start(of: seen).map { $0 % Self.chunkSize == 0 && $0 < 4 * Self.chunkSize } ?? false
        }
        fixture.plan(.wait(gate), count: 100) { start(of: $0) != nil }
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        let run = Task { try await client.run(id) }
        #expect(try await eventually(within: .seconds(30)) { gate.arrivalCount == 4 })
        try await body(client, id)
        run.cancel()
        _ = try await run.value
        gate.open()
        try await client.close()
        fixture.server.state.withLock {
            $0.faults = []
            $0.seen = []
        }
        return id
    }

    /// Runs the transfer to its end and expects requests for exactly this many bytes.
    private func finish(_ id: TransferID, asking byteCount: Int) async throws {
        let snapshot = try await (try await fixture.client()).run(id)
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
        let asked = fixture.server.state.withLock { $0.seen }.compactMap { length(of: $0) }
        #expect(asked.allSatisfy { $0 > 0 })
        #expect(asked.reduce(0, +) == byteCount)
    }

    private func changeRecords(_ sql: String, _ arguments: StatementArguments = []) throws {
        let queue = try fixture.openRecords()
        try queue.write { try $0.execute(sql: sql, arguments: arguments) }
        try queue.close()
    }

    private func withTemporaryFile(_ body: (any OpenFile) throws -> Void) throws {
        let name = try #require(fixture.names().first { $0.hasSuffix(".kedge-part") })
        let file = try POSIXFileSystem().open(fixture.path(name), .readWrite)
        try body(file)
        try file.close()
    }

    private func damage(at offset: Int64) throws {
        try withTemporaryFile { file in
            try [bytes[Int(offset)] ^ 1].withUnsafeBytes { try file.write($0, at: offset) }
        }
    }

    private func state(ofFirst count: Int) -> Data {
        var hasher = SHA256Hasher()
        hasher.update(Array(bytes[..<count]))
        return Data(hasher.savedState)
    }

    @Test func `a stopped download keeps every byte that arrived`() async throws {
        let id = try await begin(addPlain(bytes))
        let kept = try await (try await fixture.client()).transfer(id).bytesTransferred
        #expect(kept == 4 * Self.part)
        try await finish(id, asking: bytes.count - 4 * Self.part)
    }

    @Test func `arrived bytes are recorded before they are synced`() async throws {
        _ = try await begin(addPlain(bytes)) { client, id in
            let partials = try await client.store.partials(of: id)
            #expect(partials.map(\.index) == [0, 1, 2, 3])
            #expect(partials.allSatisfy { $0.noted.offsetBytes == Self.part && $0.synced == nil })
        }
    }

    @Test func `a killed download continues after the recorded bytes`() async throws {
        let id = try await begin(.file(fixture.addFile(bytes)))
        try changeRecords("UPDATE download_partial SET synced_bytes = 0, synced_state = NULL")
        try await finish(id, asking: bytes.count - 4 * Self.part)
    }

    @Test func `recorded bytes that are not in the file are fetched again`() async throws {
        let id = try await begin(addPlain(bytes))
        try changeRecords("UPDATE download_partial SET synced_bytes = 0, synced_state = NULL")
        try damage(at: 30_000)
        try await finish(id, asking: bytes.count - 3 * Self.part)
    }

    @Test func `after a power cut a chunk continues from its last sync`() async throws {
        let id = try await begin(addPlain(bytes))
        try changeRecords(
            """
            UPDATE download_partial SET synced_bytes = 20000, synced_state = ?
            WHERE chunk_index = 0
            """, [state(ofFirst: 20_000)])
        try damage(at: 30_000)
        try await finish(id, asking: bytes.count - 3 * Self.part - 20_000)
    }

    @Test func `synced bytes that are damaged are fetched again`() async throws {
        let id = try await begin(addPlain(bytes))
        try damage(at: 100)
        try await finish(id, asking: bytes.count - 3 * Self.part)
    }

    @Test(arguments: [true, false])
    func `a chunk whose bytes are all there is requested only if they are wrong`(isRight: Bool)
        async throws
    {
        let id = try await begin(.file(fixture.addFile(bytes)))
        try withTemporaryFile { file in
            let rest = bytes[Self.part..<Self.chunkSize]
            try rest.withUnsafeBytes { try file.write($0, at: Int64(Self.part)) }
        }
        if !isRight { try damage(at: 50_000) }
        try changeRecords(
            """
            UPDATE download_partial SET noted_bytes = 65536, noted_state = ?
            WHERE chunk_index = 0
            """, [state(ofFirst: Self.chunkSize)])
        let first = isRight ? Self.chunkSize : Self.part
        try await finish(id, asking: bytes.count - first - 3 * Self.part)
    }

    @Test func `bytes of an older version are not mixed with the new one`() async throws {
        let reference = addPlain(TransferEnvironment.bytes(600_000, seed: 3))
        let id = try await begin(reference)
        _ = addPlain(bytes, etag: "\"v2\"")
        try await finish(id, asking: bytes.count)
    }

    @Test func `a chunk whose digest does not match discards its partial`() async throws {
        let id = try await begin(.file(fixture.addFile(bytes)))
        let gate = Gate()
        fixture.plan(.rewrite { $0.body[5] ^= 1 }) { $0.fields[.range] == "bytes=40960-65535" }
        fixture.plan(.wait(gate), count: 100) { $0.fields[.range] == "bytes=0-65535" }
        let client = try await fixture.client()
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        #expect(try await client.store.partials(of: id).contains { $0.index == 0 } == false)
        gate.open()
        #expect(try await run.value.state == .completed)
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
    }
}

/// First byte of the range that a request asks for.
private func start(of seen: FakeServer.Seen) -> Int? { bounds(of: seen)?.first }

private func length(of seen: FakeServer.Seen) -> Int? {
    bounds(of: seen).map { $0[1] - $0[0] + 1 }
}

private func bounds(of seen: FakeServer.Seen) -> [Int]? {
    guard let range = seen.fields[.range] else { return nil }
    let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
    return ends.count == 2 ? ends : nil
}
