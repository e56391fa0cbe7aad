import KedgeModel
import KedgeTesting
import Testing

/// Bodies that end before their chunk does, over HTTP.
@Suite(.timeLimit(.minutes(1))) struct PartialBodyTests {
    @Test func `a part of a chunk is answered with 202 and the durable byte count`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            #expect(try await server.ask(upload.put(0)).status == 201)
            // Repeats the last range, as after a lost answer.
            for (start, end) in [(0, 400), (400, 999), (400, 999)] {
                let answer = try await server.ask(upload.put(1, from: start, upTo: end))
                #expect(answer.status == 202)
                let chunk = PartialChunk(index: 1, receivedBytes: Int64(end))
                #expect(try answer.decoded(PartialChunk.self) == chunk)
                #expect(try await server.status(of: upload).partialChunks == [chunk])
            }
            #expect(try await server.ask(upload.put(1, from: 999)).status == 201)
            #expect(try await server.ask(upload.put(2)).status == 201)
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(try await server.get("/files/\(file.remoteFileId)").body == upload.content)
        }
    }

    @Test func `a stored part of a chunk gets no 100 Continue`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(1, upTo: 400))
            let connection = try await server.connect()
            let request = upload.put(1, upTo: 400).with([("Expect", "100-continue")])
            try await connection.send(request.head)
            #expect(try await connection.answer().status == 202)
        }
    }

    @Test func `the limits of a session announce partial bodies`() async throws {
        try await SharedServer.use { server in
            let request = CreateSessionRequest(fileName: "a", fileSize: 10)
            let session = try await server.ask(.createSession(request))
                .decoded(CreateSessionResponse.self)
            #expect(session.limits.partialBodies == true)
            let path = "/uploads/sessions/\(session.sessionId)"
            for form in ["", "?chunks=ranges"] {
                let status = try await server.get(path + form).decoded(SessionStatus.self)
                #expect(status.limits == session.limits)
            }
        }
    }
}
