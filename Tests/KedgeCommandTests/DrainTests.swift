import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// SIGTERM while fifty chunks are in flight: acknowledged chunks stay, received bytes are kept, and
/// the process ends in time.
///
/// Serialized, because what must happen within seconds needs the machine for itself.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct DrainTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private static let senderCount = 50
    private static let chunkByteCount = 256 << 10
    /// Half of a chunk: the bytes of the first checkpoint, and about as many that only the process
    /// has.
    private static let heldByteCount = 130_000
    private static let checkpointByteCount = 64 << 10
    /// No sender is cut for being slow, because a busy machine needs time to set up the test.
    private static let longTimeouts = [
        "--timeouts-min-body-bytes-per-second", "0", "--timeouts-idle-seconds", "600",
    ]

    /// Fifty sessions, each with its first chunk acknowledged and the second under way.
    private func begin(at server: Server) async throws -> [RawChunk] {
        var chunks: [RawChunk] = []
        for number in 0..<Self.senderCount {
            let file = RawFile(
                byteCount: 2 * Self.chunkByteCount, chunkByteCount: Self.chunkByteCount,
                seed: UInt64(number + 1))
            let upload = try RawUpload(file, to: server)
            try upload.send(0, to: server)
            chunks.append(try RawChunk(1, of: upload, to: server))
        }
        try await chunks.push(upTo: Self.heldByteCount)
        for chunk in chunks {
            try await eventually(
                "a checkpoint shows that the chunk is under way",
                is: { try !chunk.upload.status(at: server).partialChunks.isEmpty })
        }
        return chunks
    }

    /// Returns when the server accepts no more connections.
    private func untilRefused(by server: Server) async throws {
        try await eventually(
            "no connection is taken any more",
            is: {
                guard let socket = LoopbackSocket.connect(to: server.port) else { return true }
                close(socket)
                return false
            })
    }

    // R1, R6, R12: a chunk in flight at the end of a process completes, or resumes in the next one.
    @Test
    func `chunks that arrive in time are accepted, and interrupted ones resume after the restart`()
        async throws
    {
        let server = try await fixture.serve(
            Self.longTimeouts + ["--shutdown-drain-seconds", "100"])
        let chunks = try await begin(at: server)
        server.process.signal(SIGTERM)
        try await untilRefused(by: server)
        #expect(server.process.isRunning, "it waits for what is under way")

        let (broken, going) = (Array(chunks[..<10]), Array(chunks[10...]))
        for chunk in broken { chunk.connection.reset() }
        try await going.push(upTo: Self.chunkByteCount)
        for answer in try await going.answers() {
            #expect(answer.status == 201)
            #expect(answer["Connection"] == "close")
        }
        #expect(try await server.process.wait(within: .seconds(30)) == .exited(0))

        let next = try await fixture.serve()
        for chunk in going {
            #expect(try chunk.upload.status(at: next).receivedChunks == [0, 1], "acknowledged")
        }
        for chunk in broken {
            let status = try chunk.upload.status(at: next)
            #expect(status.receivedChunks == [0])
            let kept = try #require(status.partialChunks.first?.receivedBytes)
            #expect((Self.checkpointByteCount...Self.heldByteCount).contains(Int(kept)))
        }
        for chunk in chunks { try await chunk.upload.expectFinished(at: next) }
    }

    // R1, R6, R12.
    @Test(arguments: [false, true])
    func `chunks that miss the drain are refused, kept, and resumed after the restart`(
        goesOnSending: Bool
    ) async throws {
        let drain = Duration.seconds(2)
        let server = try await fixture.serve(Self.longTimeouts + ["--shutdown-drain-seconds", "2"])
        let chunks = try await begin(at: server)
        let start = ContinuousClock.now
        server.process.signal(SIGTERM)
        if goesOnSending { try await trickle(chunks) }
        for answer in try await chunks.answers() { try answer.expectToAskAgain(.unavailable) }
        #expect(try await server.process.wait(within: .seconds(30)) == .exited(0))
        let elapsed = start.duration(to: .now)
        #expect(elapsed >= drain, "they had their time")
        #expect(elapsed < drain + .seconds(13), "nobody holds the process up")

        let next = try await fixture.serve()
        for chunk in chunks {
            let status = try chunk.upload.status(at: next)
            #expect(status.receivedChunks == [0])
            let partial = try #require(status.partialChunks.first)
            #expect(partial.index == 1)
            // All bytes of a stalled sender are kept.
            let possible = Self.heldByteCount...chunk.sentByteCount
            #expect(possible.contains(Int(partial.receivedBytes)))
            try await chunk.upload.expectFinished(at: next)
        }
    }

    /// Keeps sending a little at a time until each request is answered, and never sends the last
    /// byte.
    private func trickle(_ chunks: [RawChunk]) async throws {
        try await eventually(
            "everybody is answered",
            is: {
                for chunk in chunks where try chunk.connection.poll() == nil {
                    _ = chunk.push(upTo: min(chunk.sentByteCount + 256, Self.chunkByteCount - 1))
                }
                return chunks.allSatisfy { $0.connection.answer != nil }
            })
    }

    // A forced end is like a kill: acknowledged and checkpointed bytes are there.
    @Test func `a second signal ends the server at once`() async throws {
        let server = try await fixture.serve(
            Self.longTimeouts + ["--shutdown-drain-seconds", "100"])
        let chunks = try await begin(at: server)
        server.process.signal(SIGTERM)
        try await untilRefused(by: server)
        server.process.signal(SIGTERM)
        #expect(try await server.process.wait(within: .seconds(30)) == .exited(128 + SIGTERM))
        let next = try await fixture.serve()
        for chunk in chunks {
            let status = try chunk.upload.status(at: next)
            #expect(status.receivedChunks == [0])
            let kept = try #require(status.partialChunks.first?.receivedBytes)
            #expect(kept >= Int64(Self.checkpointByteCount))
            try await chunk.upload.expectFinished(at: next)
        }
    }
}
