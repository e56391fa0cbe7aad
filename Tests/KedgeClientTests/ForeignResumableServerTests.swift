import Foundation
import KedgeClient
import KedgeHash
import KedgeModel
import KedgeTesting
import Logging
import Testing

/// IETF resumable uploads over real connections to a third-party server.
@Suite(.timeLimit(.minutes(1)))
struct ForeignResumableServerTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(6 << 20 + 1)

    init() throws {
        fixture = try TransferEnvironment()
        try fixture.write("source.bin", bytes)
    }

    /// Bytes that the heads of some requests may add to the bytes of a file.
    private static let headsByteCount = 32 << 10

    private func client(
        _ url: String, stallTimeout: Duration = .seconds(20)
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(
            serverURL: url, stateDirectory: fixture.directory + "/state")
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return try await TransferClient(
            configuration: configuration,
            transport: CurlTransport(stallTimeout: stallTimeout), environment: fixture.environment)
    }

    private func enqueue(_ client: TransferClient) async throws -> TransferID {
        try await client.enqueueUpload(
            path: fixture.path("source.bin"),
            options: UploadOptions(uploadProtocol: .resumableUpload)
        )
    }

    private func expectArrived(
        _ snapshot: TransferSnapshot, _ bytes: [UInt8], at server: ForeignResumableServer
    ) {
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        #expect(snapshot.sha256 == SHA256Hasher.digest(of: bytes))
        #expect(snapshot.verification == .unverified)
        #expect(snapshot.bytesTransferred == Int64(bytes.count))
        #expect(server.now.fileCount == 1)
        // Compared apart, so that a failure does not print millions of numbers.
        let files = server.now.finished.map { FileManager.default.contents(atPath: $0) }
        let isWhole = files == [Data(bytes)]
        #expect(isWhole)
    }

    @Test func `a file arrives as it is, in the newest version that both sides speak`() async throws
    {
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            let client = try await client(url)
            let id = try await enqueue(client)
            expectArrived(try await client.run(id), bytes, at: server)
            #expect(try await client.store.upload(id).interopVersion == 6)
            #expect(server.now.carriedByteCount < bytes.count + Self.headsByteCount)
            try await client.close()
        }
    }

    @Test func `a file of no bytes arrives`() async throws {
        try fixture.write("source.bin", [])
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            let client = try await client(url)
            expectArrived(try await client.run(try await enqueue(client)), [], at: server)
            try await client.close()
        }
    }

    // R132.
    @Test(arguments: [900 << 10, 150 << 10])
    func `an upload over a link that keeps dying repeats no byte that arrived`(byteCount: Int)
        async throws
    {
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            server.set(.cut(after: byteCount))
            let client = try await client(url)
            expectArrived(try await client.run(try await enqueue(client)), bytes, at: server)
            let now = server.now
            #expect(now.brokenCount >= bytes.count / byteCount)
            // Each cut costs the head of a request or two, and no more.
            let most = bytes.count + Self.headsByteCount + now.brokenCount * 4096
            #expect(now.carriedByteCount < most)
            try await client.close()
        }
    }

    // R132. The server still waits for the rest of the first request when the client comes back.
    @Test func `a link that goes silent is given up, and the bytes that it carried count`()
        async throws
    {
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            server.set(.silent(after: 3 << 20))
            let client = try await client(url, stallTimeout: .seconds(1))
            let id = try await enqueue(client)
            async let run = client.run(id)
            #expect(try await eventually { server.now.brokenCount > 0 })
            server.set(.whole)
            expectArrived(try await run, bytes, at: server)
            #expect(server.now.carriedByteCount < bytes.count + Self.headsByteCount)
            try await client.close()
        }
    }

    // R1, R6, R105, R134.
    @Test func `after a kill the next client continues at the server's offset`() async throws {
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            server.set(.silent(after: 5 << 20))
            let client = try await client(url)
            let id = try await enqueue(client)
            let run = Task { try await client.run(id) }
            #expect(try await eventually { server.now.brokenCount == 1 })
            run.cancel()
            #expect(try await run.value.pauseReason == .shutdown)
            try await client.close()
            let carried = server.now.carriedByteCount
            // More than the record has: the body in flight was never acknowledged.
            #expect(carried == 5 << 20)

            server.set(.whole)
            let next = try await self.client(url)
            #expect(try await enqueue(next) == id)
            // The first body and one of twice its size.
            #expect(try await next.transfer(id).bytesTransferred == 3 * AdaptiveBodySize.initial)
            expectArrived(try await next.run(id), bytes, at: server)
            #expect(server.now.carriedByteCount < bytes.count + Self.headsByteCount)
            try await next.close()
        }
    }

    // R109.
    @Test func `cancelling removes the upload from the server`() async throws {
        try await ForeignResumableServer.serve(in: fixture.directory) { server, url in
            server.set(.silent(after: 5 << 20))
            let client = try await client(url)
            let id = try await enqueue(client)
            let run = Task { try await client.run(id) }
            #expect(try await eventually { server.now.brokenCount == 1 })
            server.set(.whole)
            #expect(try fixture.names().contains("received-1"))
            try await client.cancel(id)
            #expect(try await run.value.state == .canceled)
            #expect(try await eventually { try !fixture.names().contains("received-1") })
            #expect(server.now.finished.isEmpty)
            try await client.close()
        }
    }
}
