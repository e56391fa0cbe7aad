import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// More clients than places: the server stays within its limits and keeps serving.
///
/// Serialized, because hundreds of connections at a time need the machine for themselves.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct OverloadTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private static let connectionCount = 200
    /// Default of `limits.maxConcurrentWrites`.
    private static let writeCount = 64
    private static let chunkByteCount = 4 << 20
    /// Nearly a complete chunk, so that all of them together exceed the bound below by far.
    private static let heldByteCount = chunkByteCount * 7 / 8
    private static let strokeByteCount = 128 << 10
    /// A write holds three buffers of 512 KiB. A connection also reads up to ten times 64 KiB
    /// ahead, whether the server wants its body or discards it.
    private static let boundKibibytes = writeCount * 1024 + connectionCount * 640

    // R58: memory is bounded whatever the clients send.
    @Test func `memory for two hundred unfinished chunks follows the limits, not the bytes sent`()
        async throws
    {
        let server = try await fixture.serve([
            "--timeouts-min-body-bytes-per-second", "0", "--timeouts-idle-seconds", "600",
        ])
        let file = RawFile(
            byteCount: Self.chunkByteCount, chunkByteCount: Self.chunkByteCount, seed: 5)
        let uploads = try (0..<Self.connectionCount).map { _ in try RawUpload(file, to: server) }
        let atRest = try server.process.peakKibibytes()
        let chunks = try uploads.map { try RawChunk(0, of: $0, to: server) }
        // Refused clients keep sending, too.
        for byteCount in stride(
            from: Self.strokeByteCount, through: Self.heldByteCount, by: Self.strokeByteCount)
        {
            try await chunks.push(upTo: byteCount)
            for chunk in chunks { _ = try chunk.connection.poll() }
        }
        let refusedCount = Self.connectionCount - Self.writeCount
        try await eventually(
            "those without room are refused",
            is: { try chunks.count { try $0.connection.poll() != nil } >= refusedCount })
        let (refused, admitted) = (
            chunks.filter { $0.connection.answer != nil },
            chunks.filter { $0.connection.answer == nil }
        )
        #expect(refused.count == refusedCount)
        for answer in try await refused.answers() { try answer.expectToAskAgain(.busy) }
        try await expectUnderWay(admitted, at: server)

        try await admitted.push(upTo: Self.chunkByteCount)
        for answer in try await admitted.answers() { #expect(answer.status == 201) }
        let grown = try server.process.peakKibibytes() - atRest
        #expect(grown < Self.boundKibibytes)
        for chunk in refused {
            let status = try chunk.upload.status(at: server)
            #expect(status.receivedBytes == 0 && status.partialChunks.isEmpty)
        }
        for chunk in admitted.prefix(8) + refused.prefix(8) {
            try await chunk.upload.expectFinished(at: server)
        }
    }

    /// Expects that the server has received the bytes, so that they do not wait in the kernel.
    private func expectUnderWay(_ chunks: [RawChunk], at server: Server) async throws {
        for chunk in chunks {
            try await eventually(
                "an unfinished chunk is recorded in part",
                is: { try !chunk.upload.status(at: server).partialChunks.isEmpty })
        }
    }

    @Test func `connections over the limit wait and are served`() async throws {
        let limit = 8
        let server = try await fixture.serve(["--limits-max-connections", "\(limit)"])
        let atRest = server.process.socketCount
        var waiting = try (0..<60).map { _ in try PolledConnection(to: server) }
        try await eventually(
            "as many as allowed are accepted",
            is: { server.process.socketCount >= atRest + limit })
        let question = Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        for connection in waiting { #expect(connection.push(question[...]) == question.count) }
        try await eventually(
            "everybody is served, and makes room for the next one",
            is: {
                // A free place admits as many connections as the kernel hands over at a time.
                #expect(server.process.socketCount < atRest + limit + 4)
                try waiting.removeAll { connection in
                    guard let answer = try connection.poll() else { return false }
                    #expect(answer.status == 200)
                    return true
                }
                return waiting.isEmpty
            })
    }
}

extension ChildProcess {
    /// The peak resident memory of the process.
    fileprivate func peakKibibytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let number = line?.split(separator: " ").dropLast().last.flatMap({ Int($0) }) else {
            throw TestFailure("no VmHWM of \(id)")
        }
        return number
    }

    /// The number of open sockets, including the listener.
    fileprivate var socketCount: Int {
        let directory = "/proc/\(id)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.count { name in
            // The link of a socket that was closed meanwhile is gone.
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "\(directory)/\(name)")
            return target?.hasPrefix("socket:") ?? false
        }
    }
}
