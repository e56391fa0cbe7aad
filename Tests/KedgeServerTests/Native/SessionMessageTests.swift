import KedgeModel
import KedgeTesting
import Testing

/// `POST /uploads/sessions`: malformed messages.
@Suite(.timeLimit(.minutes(1))) struct SessionMessageTests {
    private static let path = "/uploads/sessions"

    @Test(arguments: [
        "", " ", "{", #"{"fileName":"a","fileSize":1"#, #"{"fileName":"a","fileSize":1} x"#, "null",
        "[]", "1", #""x""#, "{}", #"{"fileName":"a"}"#, #"{"fileSize":1}"#,
        #"{"fileName":1,"fileSize":1}"#, #"{"fileName":null,"fileSize":1}"#,
        #"{"fileName":["a"],"fileSize":1}"#, #"{"fileName":"\ud800","fileSize":1}"#,
        #"{"fileName":"a","fileSize":1,"mimeType":7}"#,
        #"{"fileName":"a","fileSize":1,"metadata":[]}"#,
        #"{"fileName":"a","fileSize":1,"metadata":{"k":1}}"#,
        #"{"fileName":"a","fileSize":1,"adoptSessionId":"../x"}"#,
        #"{"fileName":"a","fileSize":1,"adoptSessionId":""}"#,
    ])
    func `a malformed session message is refused`(text: String) async throws {
        try await SharedServer.use { server in
            try expectProblem(
                try await server.ask(.json("POST", Self.path, text)), .badRequest)
        }
    }

    @Test(arguments: [
        "null", "true", #""1""#, "[1]", "1.5", "01", "+1", "-", "0x1", "1e400", "١", "NaN",
        "9223372036854775808", "18446744073709551616", "-9223372036854775809",
        String(repeating: "9", count: 5000),
    ])
    func `a number that is no integer is refused`(number: String) async throws {
        try await SharedServer.use { server in
            for text in [
                #"{"fileName":"a","fileSize":\#(number)}"#,
                #"{"fileName":"a","fileSize":1,"chunkSize":\#(number)}"#,
            ] where !(number == "null" && text.contains("chunkSize")) {
                try expectProblem(
                    try await server.ask(.json("POST", Self.path, text)), .badRequest)
            }
        }
    }

    @Test(arguments: ["fileSize", "chunkSize"], ["1.5", "9223372036854775808", "true", "1e30"])
    func `a number that does not fit is refused with the name of its member`(
        member: String, number: String
    ) async throws {
        let other = member == "chunkSize" ? #""fileSize":1,"# : ""
        let text = #"{"fileName":"a",\#(other)"\#(member)":\#(number)}"#
        try await SharedServer.use { server in
            let answer = try await server.ask(.json("POST", Self.path, text))
            try expectProblem(answer, .badRequest)
            let detail = try answer.decoded(ProblemDocument.self).detail
            #expect(detail?.contains(member) == true)
        }
    }

    @Test(arguments: [
        "", "x", String(repeating: "g", count: 64), String(repeating: "a", count: 63),
        String(repeating: "a", count: 65), String(repeating: "١", count: 64),
    ])
    func `a malformed file digest is refused`(digest: String) async throws {
        let text = #"{"fileName":"a","fileSize":1,"fileHashSha256":"\#(digest)"}"#
        try await SharedServer.use { server in
            try expectProblem(
                try await server.ask(.json("POST", Self.path, text)), .badRequest)
        }
    }

    /// A parser that recurses for each bracket would overflow its stack.
    @Test(arguments: ["[", #"{"a":"#, #"{"fileName":"a","fileSize":1,"metadata":["#])
    func `deeply nested JSON is refused`(opening: String) async throws {
        try await SharedServer.use { server in
            let text = String(repeating: opening, count: 65_000 / opening.utf8.count)
            try expectProblem(
                try await server.ask(.json("POST", Self.path, text)), .badRequest)
            let deeper = String(repeating: opening, count: 100_000)
            try expectProblem(
                try await server.ask(.json("POST", Self.path, deeper)), .requestTooLarge)
        }
    }

    @Test func `64 KiB of JSON are accepted, and not one byte more`() async throws {
        try await SharedServer.use { server in
            let message = #"{"fileName":"a","fileSize":1}"#
            func ask(_ byteCount: Int) -> HTTPRequestBytes {
                let blank = String(repeating: " ", count: byteCount - message.utf8.count)
                return .json("POST", Self.path, message + blank)
            }
            let limit = 64 << 10
            #expect(try await server.ask(ask(limit)).status == 201)
            try expectProblem(try await server.ask(ask(limit + 1)), .requestTooLarge)
            let open = ask(limit + 1)
            let unannounced = open.chunked([open.body ?? []])
            try expectProblem(try await server.ask(unannounced), .requestTooLarge)
        }
    }

    @Test(arguments: ["application/json", "Application/JSON", "application/json; charset=utf-8"])
    func `JSON is accepted with its media type`(mediaType: String) async throws {
        try await SharedServer.use { server in
            let request = HTTPRequestBytes.json("POST", Self.path, Self.small)
            let answer = try await server.ask(request.with([("Content-Type", mediaType)]))
            #expect(answer.status == 201)
        }
    }

    @Test(arguments: [nil, "", "text/plain", "application/jsonx", "multipart/form-data"])
    func `a session message of another media type is refused`(mediaType: String?) async throws {
        try await SharedServer.use { server in
            let request = HTTPRequestBytes.json("POST", Self.path, Self.small)
            let answer = try await server.ask(request.with([("Content-Type", mediaType)]))
            try expectProblem(answer, .unsupportedMediaType)
        }
    }

    @Test func `JSON that is not UTF-8 is refused`() async throws {
        try await SharedServer.use { server in
            var request = HTTPRequestBytes.json("POST", Self.path, "")
            request.body = Array(#"{"fileName":""#.utf8) + [0xFF] + Array(#"","fileSize":1}"#.utf8)
            try expectProblem(try await server.ask(request), .badRequest)
        }
    }

    /// The contract lets a newer client send members that an older server does not know.
    @Test func `unknown members of a message are ignored`() async throws {
        try await SharedServer.use { server in
            let text = #"{"fileName":"a","fileSize":1,"later":{"x":[1,2]}}"#
            let answer = try await server.ask(.json("POST", Self.path, text))
            #expect(answer.status == 201)
        }
    }

    private static let small = #"{"fileName":"a","fileSize":1}"#
}
