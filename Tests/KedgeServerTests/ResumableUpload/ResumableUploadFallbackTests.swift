import KedgeTesting
import Testing

/// `POST /files` with fields of resumable uploads that match no single draft version.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadFallbackTests {
    /// The first answer is the only one, so the server sent no 104.
    @Test(arguments: ["", "10", "2", "99", "-3", "8.0", "eight", "\"8\"", "8, 8", "?1"])
    func `an unsupported draft version makes a plain upload`(version: String) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(100)
            let fields = [
                ("Upload-Draft-Interop-Version", version), ("Upload-Complete", "?1"),
                ("Upload-Length", "7"),
            ]
            let answer = try await server.ask(
                HTTPRequestBytes("POST", "/files", fields, body: content))
            #expect(answer.status == 201)
            #expect(try await server.fileBytes(answer) == content)
        }
    }

    @Test(arguments: ["", "1", "true", "?2", "?1, ?1", "?0 ?0"])
    func `a malformed Upload-Complete counts as absent`(value: String) async throws {
        try await SharedServer.use { server in
            let fields = [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", value)]
            let answer = try await server.ask(
                HTTPRequestBytes("POST", "/files", fields, body: [1]))
            #expect(answer.status == 201)
            #expect(answer.field("Upload-Complete") == nil)
            #expect(try await server.fileBytes(answer) == [1])
        }
    }

    /// No client ever gets a part of a file as the file.
    @Test(arguments: [
        [("Upload-Draft-Interop-Version", "42"), ("Upload-Complete", "?0")],
        [("Upload-Complete", "?0")], [("Upload-Incomplete", "?1")],
        [("Upload-Draft-Interop-Version", "2"), ("Upload-Incomplete", "?1")],
        // Each version with the field of the other one.
        [("Upload-Draft-Interop-Version", "3"), ("Upload-Complete", "?0")],
        [("Upload-Draft-Interop-Version", "8"), ("Upload-Incomplete", "?1")],
        [("Upload-Complete", "?1"), ("Upload-Incomplete", "?1")],
    ])
    func `an incomplete part never becomes a file, whatever its version`(
        fields: [(String, String)]
    ) async throws {
        try await SharedServer.use { server in
            let answer = try await server.askResumable(
                HTTPRequestBytes("POST", "/files", fields, body: [1, 2]))
            #expect(answer.status == 201)
            #expect(answer.field("Location")?.hasPrefix("/uploads/resumable/") == true)
        }
    }

    @Test
    func `an Upload-Length without a version is checked if the draft of the other fields has it`()
        async throws
    {
        try await SharedServer.use { server in
            let wrong = try await server.ask(
                HTTPRequestBytes(
                    "POST", "/files", [("Upload-Complete", "?1"), ("Upload-Length", "2")],
                    body: [1]))
            #expect(wrong.status == 400)
            // The draft version with this field has no length.
            let unread = try await server.ask(
                HTTPRequestBytes(
                    "POST", "/files", [("Upload-Incomplete", "?0"), ("Upload-Length", "2")],
                    body: [1]))
            #expect(unread.status == 201)
            #expect(unread.field("Upload-Incomplete") == "?0")
            // As after any plain upload.
            #expect(unread.field("Content-Location") == nil)
        }
    }

    @Test func `an HTTP 1 0 client gets no interim response`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.0\r\nHost: localhost\r\nUpload-Draft-Interop-Version: 8\r\n"
                    + "Upload-Complete: ?1\r\nContent-Length: 2\r\n\r\nab")
            let answer = try await connection.answer()
            #expect(answer.status == 201)
            #expect(try await server.fileBytes(answer) == Array("ab".utf8))
        }
    }
}
