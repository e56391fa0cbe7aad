import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CancellationTests {
    private let client = CurlClient.forTests()

    @Test func `cancelling before the head arrives closes the connection`() async {
        let hasRequest = Handover<Void>()
        let peerClosed = Handover<Bool>()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            hasRequest.give(())
            peerClosed.give(connection.waitUntilPeerCloses())
        }
        let request = TransportRequest(method: .get, url: server.url())
        let task = Task { await failure(of: client, sending: request) }
        await hasRequest.wait()
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(await peerClosed.wait() == true)
    }

    @Test func `cancelling while the body is read closes the connection`() async throws {
        let peerClosed = Handover<Bool>()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            peerClosed.give(connection.waitUntilPeerCloses())
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        let hasBegun = Handover<Void>()
        let task = Task {
            // If this fails, the drain below meets the same error.
            _ = try? await response.body.next()
            hasBegun.give(())
            return await drain(response.body).error?.curl?.code
        }
        await hasBegun.wait()
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(await peerClosed.wait() == true)
    }

    @Test func `a body cancelled after it arrived does not look complete`() async throws {
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.respond("hello") }
        }
        let client = CurlClient.forTests { $0.maxConnectionsPerHost = 1 }
        let response = try await client.send(.init(method: .get, url: server.url()))
        // With one connection, the second answer proves that the first arrived completely.
        _ = try await client.send(.init(method: .get, url: server.url()))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await drain(response.body)
        }
        let (received, error) = await task.value
        #expect(received == 0)
        #expect(error?.curl?.code == .cancelled)
    }

    @Test func `cancelling a request that waits for a connection lets the next one through`()
        async throws
    {
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.respond("hello") }
        }
        let client = CurlClient.forTests { $0.maxConnectionsPerHost = 1 }
        let request = TransportRequest(method: .get, url: server.url())
        let tasks = (0..<30).map { index in
            let task = Task { try await client.send(request).body.collect(upTo: 5) }
            if index.isMultiple(of: 3) { task.cancel() }
            return task
        }
        for (index, task) in tasks.enumerated() {
            let result = await task.result
            if !index.isMultiple(of: 3) { #expect(try result.get().count == 5) }
        }
    }

    @Test func `a task cancelled beforehand sends nothing`() async {
        let connectionCount = Shared(0)
        let server = ScriptedServer { _ in connectionCount.update { $0 += 1 } }
        let request = TransportRequest(method: .get, url: server.url())
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await failure(of: client, sending: request)
        }
        #expect(await task.value == .cancelled)
        #expect(connectionCount.value == 0)
    }

    @Test func `shutting down fails current and later requests`() async {
        let hasRequest = Handover<Void>()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            hasRequest.give(())
            connection.waitUntilPeerCloses()
        }
        let request = TransportRequest(method: .get, url: server.url())
        let task = Task { await failure(of: client, sending: request) }
        await hasRequest.wait()
        await client.shutdown()
        await client.shutdown()
        #expect(await task.value == .cancelled)
        #expect(await failure(of: client, sending: request) == .cancelled)
    }

    @Test func `a response body keeps its client alive`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: 8_000_000))
        }
        let response = try await CurlClient.forTests().send(
            .init(method: .get, url: server.url()))
        #expect(await drain(response.body).byteCount == 8_000_000)
    }
}
