import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge upload` under kills, faults and changes of the source.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct UploadTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    func command(_ sample: SampleFile, _ url: String, _ more: String...) -> [String] {
        ["upload", sample.path, "--server", url, "--json"] + more
    }

    /// The side that is killed next.
    private enum Victim {
        case client
        case server
    }

    /// The chunks that a server reported at a moment without a running client.
    private struct Acknowledgement {
        let chunks: Set<Int>
        let time: Timestamp
    }

    // R1, R6, R13, R62, R74, R77, R134.
    @Test(arguments: Seeds.all)
    func `an upload survives three kills of the client and two of the server`(
        seed: UInt64
    ) async throws {
        var generator = SplitMix64(seed: seed)
        let source = try fixture.sample(mebibytes: 64, plus: 12_345, seed: seed)
        let chunkCount = 65
        var servers = [try await fixture.serve()]
        let proxy = try fixture.proxy(to: servers[0].port, Faults(bytesPerSecond: 8 << 20))
        let command = command(source, proxy.url, "--chunk-size", "1048576")
        var clients = [try fixture.start(command)]
        var acknowledgements: [Acknowledgement] = []
        let victims: [Victim] = [.client, .client, .client, .server, .server]
        for (position, victim) in victims.shuffled(using: &generator).enumerated() {
            let first = chunkCount * position / 6
            let target = Int.random(in: first + 1...first + 10, using: &generator)
            let delay = Int.random(in: 0...30, using: &generator)
            try await eventually("\(target) chunks are there") {
                servers.requests.created.count >= target
            }
            try await Task.sleep(for: .milliseconds(delay))
            let session = try #require(servers.requests.sessionIDs.first)
            switch victim {
            case .client:
                let client = clients[clients.count - 1]
                client.signal(SIGKILL)
                #expect(try await client.wait() == .signaled(SIGKILL), "it had ended before")
                let status = try await fixture.session(session, at: servers[servers.count - 1].url)
                acknowledgements.append(
                    Acknowledgement(chunks: Set(status.receivedChunks), time: .now))
                clients.append(try fixture.start(command))
            case .server:
                let acknowledged = Set(servers.requests.created.keys)
                let old = servers[servers.count - 1]
                old.process.signal(SIGKILL)
                #expect(try await old.process.wait() == .signaled(SIGKILL))
                servers.append(try await fixture.serve())
                let status = try await fixture.session(session, at: servers[servers.count - 1].url)
                #expect(acknowledged.subtracting(status.receivedChunks) == [], "lost at a kill")
                proxy.upstreamPort = servers[servers.count - 1].port
            }
        }
        let finished = try await fixture.finish(clients[clients.count - 1])
        try finished.expectCompleted(source)
        expectNothingSentTwice(servers, acknowledgements, chunkCount: chunkCount)
        let ids = try clients.flatMap { try TransferLine.all($0.output).compactMap(\.transferId) }
        #expect(Set(ids).count == 1)
        #expect(proxy.counts.upByteCount < source.byteCount * 3 / 2)
        try await fixture.expectServed(
            source, id: finished.result.remoteFileId, at: servers[servers.count - 1].url)
    }

    private func expectNothingSentTwice(
        _ servers: [Server], _ acknowledgements: [Acknowledgement], chunkCount: Int
    ) {
        let requests = servers.requests
        #expect(requests.sessionIDs.count == 1)
        #expect(requests.created.filter { $0.value > 1 } == [:])
        // A kill can lose the log line of a chunk, but only of a chunk in flight.
        #expect(requests.created.count > chunkCount - 2 * 8)
        for acknowledgement in acknowledgements {
            let repeated = requests.chunks.filter {
                $0.begin > acknowledgement.time
                    && acknowledgement.chunks.contains($0.chunkIndex ?? -1)
            }
            #expect(repeated.compactMap(\.chunkIndex) == [], "sent again after a kill")
        }
    }

    // R1, R132: 4 MiB chunks over a link that carries 300 KiB at a time.
    @Test(arguments: Faults.Cut.allCases)
    func `an upload over a link that keeps failing resumes inside its chunks`(
        cut: Faults.Cut
    ) async throws {
        let source = try fixture.sample(mebibytes: 30, plus: 1)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .up, cutsAfter: 300 << 10, cut: cut))
        let finished = try await fixture.run(command(source, proxy.url))
        try finished.expectCompleted(source)
        // Many more connections end because the client closes them.
        #expect(proxy.counts.cutCount >= 60)
        let chunks = server.requests.chunks
        let continued = chunks.filter { ($0.firstByte ?? 0) % (4 << 20) != 0 }
        #expect(continued.count >= 60)
        #expect(server.requests.created.count == 8)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
        // A reset may discard bytes that the receiver had not read yet.
        if cut == .finish {
            #expect(proxy.counts.upByteCount < source.byteCount * 13 / 10)
            // Once a request has left 64 KiB of a chunk, no later request starts from its first
            // byte. A request that is refused at once sent no byte: it only asked for the offset.
            // The server may read two consecutive requests in either order.
            let begun = chunks.filter {
                ($0.firstByte ?? 0) % (4 << 20) == 0 && $0.bodyByteCount >= 64 << 10
            }
            let again = begun.filter { later in
                begun.contains {
                    $0.chunkIndex == later.chunkIndex
                        && $0.end.advanced(by: .milliseconds(250)) < later.begin
                }
            }
            #expect(again.isEmpty)
            #expect(begun.count <= 8 + 4, "more than the first window may be sent twice")
        }
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: server.url)
    }

    // R133.
    @Test func `connections that end between two chunks repeat no chunk`() async throws {
        let source = try fixture.sample(mebibytes: 30)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .down, cutsAfterAnswers: 3))
        let finished = try await fixture.run(
            command(source, proxy.url, "--chunk-size", "524288"))
        try finished.expectCompleted(source)
        #expect(proxy.counts.cutCount >= 15)
        #expect(server.requests.created.count == 60)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
        #expect(proxy.counts.upByteCount < source.byteCount * 13 / 10)
    }

    // R16, R137.
    @Test func `only chunks with a flipped bit are sent again`() async throws {
        let source = try fixture.sample(mebibytes: 40)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(
            to: server.port, Faults(direction: .up, flipsEvery: 9 << 20))
        let finished = try await fixture.run(
            command(source, proxy.url, "--chunk-size", "1048576"))
        try finished.expectCompleted(source)
        let flipCount = proxy.counts.flipCount
        let refused = server.requests.chunks.filter { $0.errorCode == "CHUNK_HASH_MISMATCH" }
        #expect(flipCount >= 4)
        #expect(refused.count == flipCount)
        #expect(server.requests.chunks.count == 40 + flipCount)
        #expect(server.requests.created.count == 40)
        let transfer = try #require(try finished.result.transferId)
        let repeated = try await fixture.diagnose(transfer).repeatedChunks
        #expect(Set(repeated.keys.compactMap { Int($0) }) == Set(refused.compactMap(\.chunkIndex)))
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: server.url)
    }

    // R1: a proxy in front of the server answers, or hangs up, while the server is away. All chunks
    // in flight notice the same outage; together they must not use up the retries of one.
    @Test func `an outage of seconds behind a proxy fails no upload`() async throws {
        let source = try fixture.sample(mebibytes: 48)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 24 << 20))
        let client = try fixture.start(command(source, proxy.url, "--chunk-size", "1048576"))
        try await eventually("some chunks are there") { server.requests.created.count >= 12 }
        server.process.end()
        // The outage is a duration, so there is no event to wait for.
        try await Task.sleep(for: .seconds(5))
        let next = try await fixture.serve()
        proxy.upstreamPort = next.port
        let back = ContinuousClock.now
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        #expect(back.duration(to: .now) < .seconds(20), "it waits long after the server is back")
    }

    // R75.
    @Test func `a session that was deleted on the server is replaced by a new one`() async throws {
        let source = try fixture.sample(mebibytes: 32)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 12 << 20))
        let client = try fixture.start(command(source, proxy.url, "--chunk-size", "1048576"))
        try await eventually("five chunks are there") { server.requests.created.count >= 5 }
        let session = try #require(server.requests.sessionIDs.first)
        try fixture.delete("/uploads/sessions/\(session)", at: server)
        proxy.faults = Faults()
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        #expect(server.requests.sessionIDs.count == 2)
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: server.url)
    }

    // R104.
    @Test func `an upload waits as queued for a server that has not started yet`() async throws {
        let source = try fixture.sample(mebibytes: 4)
        let proxy = try FaultyProxy(upstreamPort: 0, faults: Faults(), isListening: false)
        defer { proxy.stop() }
        let client = try fixture.start(command(source, proxy.url))
        let waiting = try await fixture.transfer { $0.errorCode == "OFFLINE" }
        #expect(waiting.state == "queued")
        let server = try await fixture.serve()
        proxy.upstreamPort = server.port
        proxy.listen()
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        #expect(try finished.result.transferId == waiting.transferId)
    }

    // R104, R105: the JSON lines report the wait without a request for it.
    @Test func `an upload reports that it waits for a server`() async throws {
        let source = try fixture.sample(mebibytes: 1)
        let proxy = try FaultyProxy(upstreamPort: 0, faults: Faults(), isListening: false)
        defer { proxy.stop() }
        let client = try fixture.start(command(source, proxy.url))
        try await eventually("a line says so", within: .seconds(6)) {
            // A line may be incomplete.
            (try? TransferLine.all(client.output))?.contains {
                $0.state == "queued" && $0.errorCode == "OFFLINE"
            } ?? false
        }
    }

    /// The moment at which the source changes or disappears.
    enum SourceEvent: Hashable, CaseIterable {
        case whileRunning
        case betweenRuns
    }

    // R100, R138.
    @Test(arguments: SourceEvent.allCases)
    func `a changed source is uploaded again in its new version`(event: SourceEvent) async throws {
        let source = try fixture.sample(mebibytes: 32)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 12 << 20))
        let command = command(source, proxy.url, "--chunk-size", "1048576")
        var client = try fixture.start(command)
        try await eventually("some chunks are there") { server.requests.created.count >= 8 }
        let old = try #require(try TransferLine.all(client.output).first?.transferId)
        if event == .betweenRuns {
            client.signal(SIGKILL)
            _ = try await client.wait()
        }
        let changed = try SampleFile.write(source.path, byteCount: 20 << 20, seed: 99)
        proxy.faults = Faults()
        if event == .betweenRuns { client = try fixture.start(command) }
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(changed)
        #expect(try finished.result.transferId != old)
        let before = try await fixture.diagnose(old)
        #expect(before.state == "canceled")
        #expect(before.errorCode == "FILE_CHANGED")
        #expect(server.requests.sessionIDs.count == 2, "the old session is not used again")
        try await fixture.expectServed(changed, id: finished.result.remoteFileId, at: server.url)
    }

    // R113.
    @Test(arguments: SourceEvent.allCases)
    func `a missing source is its own error, and its upload resumes once it is back`(
        event: SourceEvent
    ) async throws {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 12 << 20))
        let command = command(source, proxy.url, "--chunk-size", "1048576")
        var client = try fixture.start(command)
        try await eventually("some chunks are there") { server.requests.created.count >= 5 }
        let id = try TransferLine.all(client.output).first?.transferId
        if event == .betweenRuns {
            client.signal(SIGKILL)
            _ = try await client.wait()
        }
        try FileManager.default.moveItem(atPath: source.path, toPath: fixture.path("elsewhere"))
        proxy.faults = Faults()
        if event == .betweenRuns { client = try fixture.start(command) }
        let failed = try await fixture.finish(client)
        #expect(failed.termination == .exited(ExitStatus.sourceChanged))
        #expect(try failed.result.errorCode == "FILE_MISSING")
        try FileManager.default.moveItem(atPath: fixture.path("elsewhere"), toPath: source.path)
        let finished = try await fixture.run(command)
        try finished.expectCompleted(source)
        #expect(try finished.result.transferId == id)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
    }

    // R107: a full server loses no acknowledged bytes, and continues after space is freed.
    @Test(.enabled(if: SmallDisk.isAvailable, "mounts: not permitted"))
    func `a full server is its own error, and the upload resumes once there is space`()
        async throws
    {
        let disk = try fixture.disk("disk", byteCount: 64 << 20)
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve(data: "disk/data", ["--storage-reserve-bytes", "0"])
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let command = command(source, proxy.url, "--chunk-size", "1048576")
        let client = try fixture.start(command)
        try await eventually("some chunks are there") { server.requests.created.count >= 6 }
        try SmallDisk.fill(disk)
        let failed = try await fixture.finish(client)
        #expect(failed.termination == .exited(ExitStatus.diskFull))
        #expect(try failed.result.errorCode == "STORAGE_FULL")
        let acknowledged = Set(server.requests.created.keys)
        #expect((6..<24).contains(acknowledged.count))
        try SmallDisk.free(disk)
        let session = try #require(server.requests.sessionIDs.first)
        let status = try await fixture.session(session, at: server.url)
        #expect(acknowledged.subtracting(status.receivedChunks) == [])
        proxy.faults = Faults()
        let finished = try await fixture.run(command)
        try finished.expectCompleted(source)
        #expect(try finished.result.transferId == failed.result.transferId)
        #expect(server.requests.created.count == 24)
        #expect(server.requests.created.values.allSatisfy { $0 == 1 })
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: server.url)
    }
}

extension Timestamp {
    /// The time of the system's clock.
    static var now: Timestamp {
        Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
