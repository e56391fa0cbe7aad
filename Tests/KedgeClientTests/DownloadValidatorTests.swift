import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Servers without a strong ETag: a download continues where that is safe and never mixes versions.
@Suite(.timeLimit(.minutes(1)))
struct DownloadValidatorTests {
    private static let size = 600_000
    private static let chunkSize: Int64 = 131_072
    /// Bytes that arrive of each of the first four chunks. The client compares the last 64 KiB.
    private static let part = 100_000
    private static let modified = "Fri, 02 Jan 2026 03:04:05 GMT"
    private static let later = "Fri, 02 Jan 2026 03:04:06 GMT"
    private let fixture: TransferEnvironment
    private let old = TransferEnvironment.bytes(size)

    init() throws { fixture = try TransferEnvironment() }

    /// The fields with which a server names a version.
    struct Naming: Sendable, CustomStringConvertible {
        let description: String
        var etag: String?
        var lastModified: String?
        var date: String?

        static let tooYoung = Naming(
            description: "a date of this second", lastModified: modified, date: modified)
        static let weakTag = Naming(
            description: "a weak tag", etag: "W/\"v1\"", lastModified: modified, date: later)
        static let nothing = Naming(description: "nothing")
        static let oldEnough = Naming(
            description: "a date of a second before", lastModified: modified, date: later)
        static let allWeak = [tooYoung, weakTag, nothing]
    }

    private func serve(_ bytes: [UInt8], _ naming: Naming) -> RemoteReference {
        fixture.server.state.withLock {
            $0.plain["x"] = FakeServer.Plain(
                bytes: bytes, etag: naming.etag, lastModified: naming.lastModified,
                date: naming.date)
        }
        return .url(FakeServer.base + "/plain/x")
    }

    private var ranges: [FakeServer.Seen] {
        // A probe requests one byte.
        fixture.seen("GET", "/plain/").filter {
            $0.fields[.range].map { $0 != "bytes=0-0" } ?? false
        }
    }

    private func client() async throws -> TransferClient {
        try await fixture.client { $0.chunkSize = Self.chunkSize }
    }

    /// Runs a download until it has a part of each of four chunks, then stops it. A file that comes
    /// in one request is stopped after its first part.
    private func begin(
        _ reference: RemoteReference, _ options: DownloadOptions = DownloadOptions(),
        inOneGo: Bool = false
    ) async throws -> TransferID {
        let isContent: @Sendable (FakeServer.Seen) -> Bool = {
            $0.method == "GET" && $0.fields[.range] != "bytes=0-0"
        }
        let (gate, count) = (Gate(), inOneGo ? 1 : 4)
        fixture.plan(.rewrite { $0.cutsAfter = Self.part }, count: count, when: isContent)
        fixture.plan(.wait(gate), count: 100, when: isContent)
        let client = try await client()
        let id = try await client.enqueueDownload(
            reference, to: fixture.path("out.bin"), options: options)
        let run = Task { try await client.run(id) }
        #expect(
            try await eventually(within: .seconds(30)) { gate.arrivalCount == count })
        run.cancel()
        _ = try await run.value
        gate.open()
        try await client.close()
        fixture.server.state.withLock { ($0.faults, $0.seen) = ([], []) }
        return id
    }

    private func finish(_ id: TransferID, with bytes: [UInt8]) async throws -> TransferSnapshot {
        let client = try await client()
        let snapshot = try await client.run(id)
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        let isRight = fixture.read("out.bin") == bytes
        #expect(isRight)
        return snapshot
    }

    /// Returns the old bytes with one byte changed.
    private func replacement(differingAt offset: Int) -> [UInt8] {
        var bytes = old
        bytes[offset] ^= 1
        return bytes
    }

    @Test func `a Last-Modified date that is old enough is used in If-Range`() async throws {
        let id = try await begin(serve(old, .oldEnough))
        let snapshot = try await finish(id, with: old)
        #expect(snapshot.verification == .unverified)
        #expect(ranges.count == 5)
        #expect(ranges.allSatisfy { $0.fields[.ifRange] == Self.modified })
        // The bytes before the break are requested once more.
        #expect(ranges.contains { $0.fields[.range] == "bytes=34464-131071" })
    }

    @Test func `a file replaced under its old date is noticed by the bytes before the break`()
        async throws
    {
        let id = try await begin(serve(old, .oldEnough))
        let new = replacement(differingAt: 40_000)
        _ = serve(new, .oldEnough)
        _ = try await finish(id, with: new)
        let client = try await client()
        #expect(try await client.diagnose(id).remoteChangeCount == 1)
    }

    @Test func `a file with another Last-Modified date is another version`() async throws {
        let id = try await begin(serve(old, .oldEnough))
        var naming = Naming.oldEnough
        naming.lastModified = "Fri, 02 Jan 2026 03:04:04 GMT"
        let new = replacement(differingAt: 200)
        _ = serve(new, naming)
        _ = try await finish(id, with: new)
    }

    @Test(arguments: Naming.allWeak)
    func `without a strong validator a download begins again and says why`(naming: Naming)
        async throws
    {
        let id = try await begin(serve(old, naming), inOneGo: true)
        let new = replacement(differingAt: 100)
        _ = serve(new, naming)
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.method == "GET" && $0.fields[.range] == nil }
        let client = try await client()
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        #expect(try await client.transfer(id).errorCode == .preconditionFailed)
        gate.open()
        #expect(try await run.value.verification == .unverified)
        let isRight = fixture.read("out.bin") == new
        #expect(isRight)
        #expect(ranges.isEmpty)
    }

    @Test(arguments: Naming.allWeak)
    func `a download with a known hash continues without a strong validator`(naming: Naming)
        async throws
    {
        let options = DownloadOptions(expectedSHA256: SHA256Hasher.digest(of: old))
        let id = try await begin(serve(old, naming), options)
        let snapshot = try await finish(id, with: old)
        #expect(snapshot.verification == .sha256)
        #expect(ranges.count == 5)
        #expect(ranges.allSatisfy { $0.fields[.ifRange] == nil })
    }

    /// The versions differ in the compared bytes or before them.
    @Test(arguments: Naming.allWeak, [40_000, 100])
    func `a mixture of two versions does not pass the hash`(naming: Naming, offset: Int)
        async throws
    {
        let new = replacement(differingAt: offset)
        let options = DownloadOptions(expectedSHA256: SHA256Hasher.digest(of: new))
        let id = try await begin(serve(old, naming), options)
        _ = serve(new, naming)
        let snapshot = try await finish(id, with: new)
        #expect(snapshot.verification == .sha256)
    }

    @Test(arguments: Naming.allWeak)
    func `a download continues unverified if the options allow it`(naming: Naming) async throws {
        let options = DownloadOptions(resumesUnverified: true)
        let id = try await begin(serve(old, naming), options)
        let snapshot = try await finish(id, with: old)
        #expect(snapshot.verification == .unverified)
        #expect(ranges.count == 5)
    }

    @Test func `bytes that arrived with a known hash are fetched again without it`() async throws {
        let options = DownloadOptions(expectedSHA256: SHA256Hasher.digest(of: old))
        let reference = serve(old, .tooYoung)
        let id = try await begin(reference, options)
        let new = replacement(differingAt: 100)
        // The date is old enough by now, but the bytes are different.
        _ = serve(new, .oldEnough)
        let client = try await client()
        #expect(try await client.enqueueDownload(reference, to: fixture.path("out.bin")) == id)
        try await client.close()
        _ = try await finish(id, with: new)
    }

    // Files are replaced during outages.
    @Test func `an outage does not shorten the compared bytes`() async throws {
        let reference = serve(old, .oldEnough)
        let isContent: @Sendable (FakeServer.Seen) -> Bool = { $0.fields[.ifRange] != nil }
        fixture.plan(.rewrite { $0.cutsAfter = Self.part }, when: isContent)
        fixture.plan(.answer(Reply(status: 503)), count: 4, when: isContent)
        fixture.plan(.offline, count: 4, when: isContent)
        let client = try await fixture.client {
            ($0.chunkSize, $0.connections) = (Self.chunkSize, 1)
        }
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        _ = try await client.run(id)
        try await client.close()
        _ = try await finish(id, with: old)
        #expect(ranges.filter { $0.fields[.range] == "bytes=34464-131071" }.count == 9)
    }

    @Test func `the compared bytes reach into the chunk before`() async throws {
        let reference = serve(old, .oldEnough)
        fixture.plan(.rewrite { $0.cutsAfter = 65_536 + 500 }) {
            $0.fields[.range] == "bytes=65536-262143"
        }
        let client = try await fixture.client {
            ($0.chunkSize, $0.connections) = (Self.chunkSize, 1)
        }
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        _ = try await client.run(id)
        try await client.close()
        _ = try await finish(id, with: old)
        #expect(ranges.contains { $0.fields[.range] == "bytes=66036-262143" })
    }

    @Test func `a download progresses over a link that carries less than the compared bytes`()
        async throws
    {
        let reference = serve(old, .oldEnough)
        fixture.plan(.rewrite { $0.cutsAfter = 20_000 }, count: 60) { $0.fields[.ifRange] != nil }
        let client = try await client()
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        try await client.close()
        _ = try await finish(id, with: old)
    }
}

/// RFC 9110 sections 8.8.2.2 and 13.1.5.
struct RangeValidatorTests {
    private let modified = "Fri, 02 Jan 2026 03:04:05 GMT"

    @Test func `a date is a strong validator a second later, and only without an ETag`() {
        let later = "Fri, 02 Jan 2026 03:04:06 GMT"
        #expect(RangeValidator([.lastModified: modified, .date: later]) == .date(modified))
        #expect(RangeValidator([.lastModified: modified, .date: modified]) == .weak(modified))
        #expect(RangeValidator([.lastModified: later, .date: modified]) == .weak(later))
        #expect(RangeValidator([.lastModified: modified]) == .weak(modified))
        let tagged: HTTPFields = [.eTag: "W/\"1\"", .lastModified: modified, .date: later]
        #expect(RangeValidator(tagged) == .weak("W/\"1\""))
    }

    @Test func `a strong ETag takes precedence over a date`() {
        #expect(RangeValidator([.eTag: "\"1\"", .lastModified: modified]) == .tag("\"1\""))
        #expect(RangeValidator([.eTag: "1", .lastModified: modified]) == .weak(""))
        #expect(RangeValidator([:]) == .weak(""))
    }

    @Test(arguments: [
        RangeValidator.tag("\"1\""), .date("Fri, 02 Jan 2026 03:04:05 GMT"), .weak("W/\"1\""),
        .weak(""),
    ])
    func `a recorded validator keeps its kind`(validator: RangeValidator) {
        #expect(RangeValidator(text: validator.text, isWeak: validator.isWeak) == validator)
    }
}
