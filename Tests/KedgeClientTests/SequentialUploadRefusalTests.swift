import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Testing

/// Servers that report impossible offsets, and addresses that lead to other origins.
@Suite(.timeLimit(.minutes(2)))
struct SequentialUploadRefusalTests {
    private let bytes = TransferEnvironment.bytes(600_000)
    private let large = TransferEnvironment.bytes(9 << 20)

    @Test(arguments: SequentialUploadEnvironment.protocols, ["HEAD", "PATCH"])
    func `an offset beyond the size ends the transfer`(
        uploadProtocol: UploadProtocol, method: String
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.limit = "max-append-size=100000" }
        fixture.plan(
            .rewrite { reply in
                if reply.fields[.uploadOffset] != nil { reply.fields[.uploadOffset] = "600001" }
            }, count: 1000
        ) { $0.method == method }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .sizeMismatch)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an offset that falls back once is followed`(uploadProtocol: UploadProtocol) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let counter = Counter()
        fixture.plan(.fail(.dropped)) { $0.method == "PATCH" && counter.next() == 1 }
        let head = Counter()
        fixture.plan(
            .rewrite { $0.fields[.uploadOffset] = "1000" }
        ) { $0.method == "HEAD" && head.next() == 0 }
        fixture.expectUploaded(try await fixture.upload(large), large)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an offset that always falls back is not followed forever`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.limit = "max-append-size=100000" }
        // The server loses everything whenever the client asks for the offset.
        fixture.plan(.fail(.dropped), count: 1000) { seen in
            seen.method == "PATCH" && seen.fields[.uploadOffset] != "0"
        }
        fixture.plan(.rewrite { $0.fields[.uploadOffset] = "0" }, count: 10_000) {
            $0.method == "HEAD"
        }
        let snapshot = try await fixture.upload(large)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .offsetMismatch)
        #expect(fixture.server.state.withLock { $0.seen.count } < 200)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a server that takes bytes and keeps its offset is not retried forever`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let reply =
            uploadProtocol == .tus
            ? Reply(status: 204, fields: [.uploadOffset: "0"])
            : Reply(
                status: 204,
                fields: [.uploadOffset: "0", .named("Upload-Complete"): "?0"])
        fixture.plan(.answer(reply), count: 1000) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .offsetMismatch)
        #expect(fixture.seen("PATCH").count <= 40)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload that has another size on the server fails the transfer`(
        uploadProtocol: UploadProtocol
    )
        async throws
    {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.fail(.dropped)) { $0.method == "PATCH" }
        fixture.plan(.rewrite { $0.fields[.uploadLength] = "7" }) { $0.method == "HEAD" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.errorCode == .sizeMismatch)
    }

    @Test(
        arguments: SequentialUploadEnvironment.protocols,
        ["/files/", "", "./", "//up.test/files/", "http://up.test:80/files/"])
    func `the address of an upload may be relative`(
        uploadProtocol: UploadProtocol, prefix: String
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.location = { prefix + $0 } }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("PATCH").allSatisfy { $0.fields[.authorization] != nil })
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `another origin gets the bytes and not the token`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.location = { "http://elsewhere.test/u/\($0)" } }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("POST").allSatisfy { $0.fields[.authorization] == "Bearer secret" })
        for method in ["HEAD", "PATCH"] {
            #expect(!fixture.seen(method).isEmpty)
            #expect(fixture.seen(method).allSatisfy { $0.fields[.authorization] == nil })
        }
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, ["Location", "redirect"])
    func `an upload that begins over HTTPS sends no bytes over HTTP`(
        uploadProtocol: UploadProtocol, way: String
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", bytes)
        let elsewhere = "http://up.test/files/1"
        if way == "Location" {
            fixture.set { $0.location = { _ in elsewhere } }
        } else {
            fixture.plan(.answer(Reply(status: 308, fields: [.location: elsewhere]))) {
                $0.method == "POST"
            }
        }
        let client = try await fixture.client { $0.serverURL = "https://up.test/files/" }
        let snapshot = try await client.run(try await fixture.enqueue(client))
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == (way == "Location" ? .protocolViolation : .redirected))
        #expect(fixture.seen("PATCH").isEmpty)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [301, 302, 307, 308])
    func `a redirect of the creation ends the upload with the new address in its message`(
        uploadProtocol: UploadProtocol, status: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let there = "http://up.test/v2/new/"
        fixture.plan(.answer(Reply(status: status, fields: [.location: there]))) {
            $0.method == "POST"
        }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .redirected)
        #expect(snapshot.message.contains(there))
        #expect(fixture.seen("POST").count == 1)
        // Repeating the command continues once the server no longer redirects.
        let client = try await fixture.client()
        let id = try await fixture.enqueue(client)
        #expect(id == snapshot.id)
        fixture.expectUploaded(try await client.run(id), bytes)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a body that is too large for an intermediary is sent in smaller ones`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", large)
        fixture.plan(.answer(Reply(status: 413)), count: 3) { $0.method == "PATCH" }
        let client = try await fixture.client()
        fixture.expectUploaded(try await client.run(try await fixture.enqueue(client)), large)
        let most = fixture.seen("PATCH").map(\.carriedByteCount).max() ?? 0
        #expect(most <= Int(AdaptiveBodySize.initial) / 8)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a refused creation ends the transfer`(uploadProtocol: UploadProtocol) async throws {
        for (status, code) in [403: ErrorCode.forbidden, 413: .fileTooLarge] {
            let fixture = try SequentialUploadEnvironment(uploadProtocol)
            fixture.plan(.answer(Reply(status: status)), count: 1000) { $0.method == "POST" }
            let snapshot = try await fixture.upload(bytes)
            #expect(snapshot.state == .failed)
            #expect(snapshot.errorCode == code)
            #expect(fixture.seen("POST").count == 1)
        }
    }
}
