import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DownloadTests {
    private let client = CurlClient.forTests()

    @Test func `a response has its status, every field and its body`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 100 Continue\r\nX-Early: yes\r\n\r\n")
            connection.send("HTTP/1.1 207 Odd One\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: 5\r\n")
            connection.send("\r\nhello")
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        let name = try #require(HTTPField.Name("X-A"))
        #expect(response.status == 207)
        #expect(response.headerFields[values: name] == ["1", "2"])
        #expect(response.headerFields.count == 3)
        #expect(try await response.body.collect(upTo: 5) == Array("hello".utf8))
    }

    @Test func `a redirect is returned to the caller`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 307 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        #expect(response.status == 307)
        #expect(response.headerFields[.location] == "/b")
    }

    @Test func `a large download arrives completely`() async throws {
        let byteCount = 64 * 1024 * 1024
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(byteCount)\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: byteCount))
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        let (received, error) = await drain(response.body)
        #expect(received == byteCount)
        #expect(error == nil)
    }

    @Test func `a reader that waits stops the sender without a stall`() async throws {
        let byteCount = 64 * 1024 * 1024
        let sentWhenBlocked = Handover<Int>()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(byteCount)\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 64 * 1024)
            var sent = 0
            // Three times the stall timeout below.
            while sent < byteCount, connection.canSend(withinMilliseconds: 600) {
                connection.send(piece)
                sent += piece.count
            }
            sentWhenBlocked.give(sent)
            while sent < byteCount, connection.send(piece) { sent += piece.count }
        }
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200))
        let response = try await client.send(.init(method: .get, url: server.url()))
        let sent = try #require(await sentWhenBlocked.wait())
        // The kernel's buffers on both sides add to the client's megabyte.
        #expect(sent < byteCount / 2)
        let (received, error) = await drain(response.body)
        #expect(received == byteCount)
        #expect(error == nil)
    }

    @Test func `a body dropped unread cuts a long response off`() async throws {
        let isCutOff = Handover<Bool>()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 1024 * 1024)
            var sentCount = 0
            while sentCount < 900, connection.send(piece) { sentCount += 1 }
            isCutOff.give(sentCount < 900)
        }
        let status = try await client.send(.init(method: .get, url: server.url())).status
        #expect(status == 200)
        #expect(await isCutOff.wait() == true)
    }

    @Test func `a body dropped unread keeps the connection of a short response`() async throws {
        let connectionCount = Shared(0)
        let server = ScriptedServer { connection in
            connectionCount.update { $0 += 1 }
            while connection.readRequest() != nil { connection.respond("short") }
        }
        let client = CurlClient.forTests { $0.maxConnectionsPerHost = 1 }
        for _ in 0..<10 {
            _ = try await client.send(.init(method: .get, url: server.url()))
        }
        #expect(connectionCount.value == 1)
    }

    @Test func `requests beyond the connection limit wait for a connection`() async throws {
        let connectionCount = Shared(0)
        let server = ScriptedServer { connection in
            connectionCount.update { $0 += 1 }
            while connection.readRequest() != nil { connection.respond("short") }
        }
        let client = CurlClient.forTests { $0.maxConnectionsPerHost = 2 }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<40 {
                group.addTask {
                    let response = try await client.send(.init(method: .get, url: server.url()))
                    return try await response.body.collect(upTo: 100).count
                }
            }
            for try await byteCount in group { #expect(byteCount == 5) }
        }
        #expect(connectionCount.value <= 2)
    }

    @Test func `collecting a body stops at its limit`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.respond("123456")
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        let error = await #expect(throws: TransportError.self) {
            try await response.body.collect(upTo: 5)
        }
        #expect(error?.kind == .other)
    }

    @Test func `a download at a low rate keeps to it and does not stall`() async throws {
        let byteCount = 64 * 1024
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(byteCount)\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: byteCount))
        }
        // Each piece of 16 KiB is paid for in half a second.
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200)) {
            $0.bandwidth = { BandwidthRates(download: 32 * 1024) }
        }
        let began = ContinuousClock.now
        let response = try await client.send(.init(method: .get, url: server.url()))
        let (received, error) = await drain(response.body)
        #expect(received == byteCount)
        #expect(error == nil)
        #expect(began.duration(to: .now) > .milliseconds(1400))
    }
}
