import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// `adoptSessionId` on `POST /uploads/sessions`: the new session takes over the bytes of an expired
/// one.
@Suite(.timeLimit(.minutes(1))) struct AdoptionTests {
    private static func expire(_ server: RunningServer) async throws {
        server.fixture.clock.advance(
            by: server.engine.configuration.sessionLifetime + .seconds(1))
        try await server.engine.sweep()
    }

    /// R129.
    @Test func `a new session continues where the expired one stopped`() async throws {
        try await withServer { server in
            let old = try await server.begin(sampleBytes(3500))
            _ = try await server.ask(old.put(0))
            _ = try await server.ask(old.put(2))
            try await server.breakOff(1, of: old, after: 300)
            try await Self.expire(server)
            let new = try await server.begin(old.content, adopting: old.id)
            #expect(new.id != old.id)
            let status = try await server.status(of: new)
            #expect(status.receivedChunks == [0, 2])
            #expect(status.receivedBytes == 2300)
            #expect(try await server.ask(new.put(1, from: 300)).status == 201)
            #expect(try await server.ask(new.put(3)).status == 201)
            let file = try await server.ask(new.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == old.digest)
        }
    }

    @Test func `the answer to an adoption has the number of adopted bytes`() async throws {
        try await withServer { server in
            let old = try await server.begin(sampleBytes(3500))
            _ = try await server.ask(old.put(3))
            try await Self.expire(server)
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(
                        fileName: "log.bin", fileSize: 3500, chunkSize: 1000,
                        adoptSessionId: old.id)))
            #expect(answer.status == 201)
            let session = try answer.decoded(CreateSessionResponse.self)
            #expect(session.receivedBytes == 500)
        }
    }

    @Test func `adopting an open or unknown session gives an empty session`() async throws {
        try await withServer { server in
            let open = try await server.begin(sampleBytes(3500))
            _ = try await server.ask(open.put(0))
            for adopted in [open.id, SessionID.random()] {
                let new = try await server.begin(sampleBytes(3500), adopting: adopted)
                #expect(try await server.status(of: new).receivedBytes == 0)
            }
            #expect(try await server.status(of: open).receivedChunks == [0])
        }
    }

    /// R75: chunks of another layout would make another file.
    @Test(arguments: [(3501, 1000), (3500, 999)])
    func `a session of another layout is not adopted`(
        byteCount: Int, chunkSize: Int
    ) async throws {
        try await withServer { server in
            let old = try await server.begin(sampleBytes(3500))
            _ = try await server.ask(old.put(0))
            try await Self.expire(server)
            let new = try await server.begin(
                sampleBytes(byteCount), chunkSize: chunkSize, adopting: old.id)
            #expect(try await server.status(of: new).receivedBytes == 0)
        }
    }

    @Test func `an expired session cannot be adopted after its grace period`() async throws {
        try await withServer { server in
            let old = try await server.begin(sampleBytes(3500))
            _ = try await server.ask(old.put(0))
            try await Self.expire(server)
            server.fixture.clock.advance(
                by: server.engine.configuration.expiryGrace + .seconds(1))
            try await server.engine.sweep()
            let new = try await server.begin(old.content, adopting: old.id)
            #expect(try await server.status(of: new).receivedBytes == 0)
        }
    }
}
