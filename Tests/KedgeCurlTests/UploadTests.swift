import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UploadTests {
    private let client = CurlClient.forTests()

    @Test func `an upload arrives completely, and its progress ends at its size`() async throws {
        let server = ScriptedServer { connection in
            guard let request = connection.readRequest() else { return }
            connection.respond("\(request.body.count) \(request.body.allSatisfy { $0 == 7 })")
        }
        let byteCount: Int64 = 8 * 1024 * 1024 + 1
        let sent = Shared<[Int64]>([])
        let response = try await client.send(
            .init(
                method: .put, url: server.url(),
                body: .source(RepeatedByte(byteCount: byteCount)),
                onBytesSent: { count in sent.update { $0.append(count) } }))
        #expect(try await response.body.collect(upTo: 100) == Array("\(byteCount) true".utf8))
        #expect(sent.value.last == byteCount)
        #expect(sent.value == sent.value.sorted())
    }

    @Test func `an answer given while the body is being sent is returned`() async throws {
        let server = ScriptedServer { connection in
            guard connection.readHead() != nil else { return }
            connection.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
            connection.waitUntilPeerCloses()
        }
        let response = try await client.send(
            .init(
                method: .put, url: server.url(),
                body: .source(RepeatedByte(byteCount: 1 << 40))))
        #expect(response.status == 413)
        #expect(try await response.body.collect(upTo: 3) == Array("big".utf8))
    }

    @Test func `a body source that throws fails the upload with its error as cause`() async throws {
        let server = ScriptedServer { $0.waitUntilPeerCloses() }
        let body = RepeatedByte(byteCount: 4 << 20, breaksAt: 2 << 20)
        let error = await #expect(throws: TransportError.self) {
            try await client.send(.init(method: .put, url: server.url(), body: .source(body)))
        }
        #expect(error?.kind == .bodyUnreadable)
        #expect(error?.cause is RepeatedByte.Broken)
        #expect(error?.isTransient == false)
    }

    @Test func `a body source that ends early fails the upload`() async {
        let server = ScriptedServer { $0.waitUntilPeerCloses() }
        let body = RepeatedByte(byteCount: 4 << 20, endsAt: 1 << 20)
        let request = TransportRequest(method: .put, url: server.url(), body: .source(body))
        #expect(await failure(of: client, sending: request) == .bodyReadFailed)
    }

    // The server may have received bytes of the body, so the caller asks before it sends again.
    @Test func `a body begun on a reused connection that dies is not resent automatically`()
        async throws
    {
        let connectionCount = Shared(0)
        let server = ScriptedServer { connection in
            let number = connectionCount.update {
                $0 += 1
                return $0
            }
            while let request = connection.readRequest() {
                // The first connection takes one upload and dies in the second.
                if number == 1, request.firstLine.contains("second") { return }
                connection.respond("\(number) \(request.body.count)")
            }
        }
        let sent = Shared<[Int64]>([])
        func send(_ path: String) async throws -> [UInt8] {
            let body = TransportBody.source(RepeatedByte(byteCount: 300_000))
            sent.update { $0 = [] }
            let response = try await client.send(
                .init(
                    method: .put, url: server.url(path), body: body,
                    onBytesSent: { count in sent.update { $0.append(count) } }))
            return try await response.body.collect(upTo: 100)
        }
        #expect(try await send("/first") == Array("1 300000".utf8))
        let error = await #expect(throws: TransportError.self) { try await send("/second") }
        #expect(error?.isTransient == true)
        // The caller has to know that bytes were sent, or it would not ask which arrived.
        #expect(sent.value.last == 300_000)
        // The second upload may have opened another connection, but sent nothing over it.
        #expect(try await String(decoding: send("/third"), as: UTF8.self).hasSuffix(" 300000"))
    }

    @Test func `an upload that the server does not read stalls`() async {
        let mayClose = Latch()
        let server = ScriptedServer { _ in mayClose.wait() }
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200))
        let body = TransportBody.source(RepeatedByte(byteCount: 1 << 40))
        let request = TransportRequest(method: .put, url: server.url(), body: body)
        #expect(await failure(of: client, sending: request) == .stalled)
        mayClose.open()
    }

    // libcurl's own limit sends all of it at once, and then nothing for longer than the timeout.
    @Test func `an upload at a low rate keeps to it and does not stall`() async throws {
        let server = ScriptedServer { connection in
            guard let request = connection.readRequest() else { return }
            connection.respond("\(request.body.count)")
        }
        // It pauses for a quarter of a second each time.
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200)) {
            $0.bandwidth = { BandwidthRates(upload: 4096) }
        }
        let began = ContinuousClock.now
        let response = try await client.send(
            .init(method: .put, url: server.url(), body: .source(RepeatedByte(byteCount: 6144))))
        #expect(try await response.body.collect(upTo: 100) == Array("6144".utf8))
        #expect(began.duration(to: .now) > .milliseconds(1400))
    }

    @Test func `a limit that is lifted ends the pause of an upload`() async throws {
        let server = ScriptedServer { connection in
            guard let request = connection.readRequest() else { return }
            connection.respond("\(request.body.count)")
        }
        let rates = Shared(BandwidthRates(upload: 1))
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200)) {
            $0.bandwidth = { rates.value }
        }
        let request = TransportRequest(
            method: .put, url: server.url(), body: .source(RepeatedByte(byteCount: 1 << 20)))
        let response = Task { try await client.send(request).body.collect(upTo: 100) }
        // Longer than the stall timeout, and far shorter than the million seconds at this rate.
        try await Task.sleep(for: .seconds(1))
        rates.update { $0 = BandwidthRates() }
        #expect(try await response.value == Array("1048576".utf8))
    }
}
