import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Testing

/// Chunks sent in several bodies, through proxies that buffer bodies or accept only small ones.
@Suite(.timeLimit(.minutes(1)))
struct PartialBodyTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(3_000_000)
    private static let chunkSize: Int64 = 1 << 20

    init() throws { fixture = try TransferEnvironment() }

    private func upload(toOldServer isOld: Bool = false) async throws -> TransferSnapshot {
        fixture.server.state.withLock { $0.takesPartialBodies = !isOld }
        let client = try await fixture.client { $0.chunkSize = Self.chunkSize }
        return try await client.run(
            try await client.enqueueUpload(path: try fixture.write("source.bin", bytes)))
    }

    private static func range(_ seen: FakeServer.Seen) -> ByteRange? {
        seen.fields[.contentRange].flatMap { ContentRange($0) }?.range
    }

    /// Matches a request with more than this many bytes of a chunk.
    private static func isLarge(_ byteCount: Int64) -> @Sendable (FakeServer.Seen) -> Bool {
        { seen in
            seen.method == "PUT" && range(seen).map { $0.byteCount > byteCount } == true
        }
    }

    private var puts: [ByteRange] { fixture.seen("PUT", "/chunks/").compactMap(Self.range) }

    private static let badGateway = Reply(
        status: 502, fields: [.contentType: "text/html"], body: Array("<html>".utf8))
    private static let tooLarge = Reply(
        status: 413, fields: [.contentType: "text/html"], body: Array("<html>".utf8))

    @Test func `without failures each chunk is sent as one body`() async throws {
        fixture.expectUploaded(try await upload(), bytes)
        #expect(puts.map(\.byteCount).sorted() == [902_848, Self.chunkSize, Self.chunkSize])
    }

    @Test(arguments: [true, false])
    func `bodies shrink until a proxy passes them on, and repeat no acknowledged byte`(
        isAnswered: Bool
    ) async throws {
        let reply = isAnswered ? Self.badGateway : nil
        fixture.plan(
            .gather(upTo: 300_000, reply), count: 1000, when: Self.isLarge(200_000))
        fixture.expectUploaded(try await upload(), bytes)
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
        #expect(puts.contains { $0.byteCount <= 200_000 && $0.byteCount > 1 })
        // The client stops sending sizes that are lost.
        #expect(puts.filter { $0.byteCount > 200_000 }.count < 30)
    }

    /// The service keeps the bytes that it took before the link behind the proxy died.
    @Test func `after a proxy's answer the client asks the service before it sends more`()
        async throws
    {
        fixture.plan(.dropBody(after: 700_000), when: Self.isLarge(100))
        fixture.plan(.answer(Self.badGateway), count: 3) { seen in
            Self.range(seen).map { $0.byteCount == 1 } == true
        }
        fixture.expectUploaded(try await upload(), bytes)
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
    }

    // HAProxy answers 400 when the link in front of it dies in the middle of a body.
    @Test func `after a proxy's 400 to a broken body the client asks the service`() async throws {
        let badRequest = Reply(
            status: 400, fields: [.contentType: "text/html"], body: Array("<html>".utf8))
        fixture.plan(.gather(upTo: 300_000, badRequest), count: 2, when: Self.isLarge(200_000))
        fixture.expectUploaded(try await upload(), bytes)
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
    }

    @Test func `a proxy that answers 400 to every body ends the transfer`() async throws {
        let badRequest = Reply(
            status: 400, fields: [.contentType: "text/html"], body: Array("<html>".utf8))
        fixture.plan(.gather(upTo: 300_000, badRequest), count: 1000) { $0.method == "PUT" }
        #expect(try await upload().errorCode == .badRequest)
    }

    @Test func `bodies that are too large for a proxy are sent in smaller ones`() async throws {
        fixture.plan(.answer(Self.tooLarge), count: 1000, when: Self.isLarge(300_000))
        fixture.expectUploaded(try await upload(), bytes)
        let passed = puts.filter { $0.byteCount <= 300_000 }
        #expect(passed.contains { $0.byteCount > 100_000 })
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
    }

    @Test func `a proxy that accepts hardly any body is reported with the body's size`()
        async throws
    {
        fixture.plan(.answer(Self.tooLarge), count: 1000, when: Self.isLarge(10_000))
        let snapshot = try await upload()
        #expect(snapshot.errorCode == .requestTooLarge)
        let message = snapshot.message
        #expect(message.contains("in front of the service") && message.contains("16384"))
    }

    // An older server refuses partial bodies, and its limits do not mention them.
    @Test func `an older server gets only bodies that reach the end of their chunk`() async throws {
        fixture.plan(.gather(upTo: 300_000, Self.badGateway), count: 3, when: Self.isLarge(200_000))
        fixture.plan(.dropBody(after: 400_000), count: 3, when: Self.isLarge(200_000))
        fixture.expectUploaded(try await upload(toOldServer: true), bytes)
        let ends = Set(puts.map(\.end))
        #expect(ends == [1 << 20, 2 << 20, 3_000_000])
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
    }

    @Test func `with an older server a proxy's limit ends the upload at once`() async throws {
        fixture.plan(.answer(Self.tooLarge), count: 1000, when: Self.isLarge(300_000))
        let snapshot = try await upload(toOldServer: true)
        #expect(snapshot.errorCode == .requestTooLarge)
        #expect(snapshot.message.contains("1048576"))
    }

    @Test func `a server that refuses partial bodies of a chunk gets it in one body`() async throws
    {
        fixture.plan(.gather(upTo: 300_000, nil), when: Self.isLarge(200_000))
        fixture.plan(.answer(Reply(problem: .rangeMismatch)), count: 1000) { seen in
            guard let range = Self.range(seen) else { return false }
            return range.end % Self.chunkSize != 0 && range.end != 3_000_000
        }
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test(arguments: [0, 100, Int64.max])
    func `an impossible answer to a partial body is not believed`(received: Int64) async throws {
        fixture.plan(.gather(upTo: 300_000, nil), when: Self.isLarge(200_000))
        fixture.plan(
            .rewrite { reply in
                guard reply.status == 202 else { return }
                reply = Reply(
                    status: 202, json: PartialChunk(index: 0, receivedBytes: received))
            }, count: 2
        ) { $0.method == "PUT" }
        fixture.expectUploaded(try await upload(), bytes)
        #expect(fixture.server.state.withLock { $0.repeatedByteCount } == 0)
    }
}
