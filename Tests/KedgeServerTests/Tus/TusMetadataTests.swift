import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `Upload-Metadata`.
@Suite(.timeLimit(.minutes(1))) struct TusMetadataTests {
    private static func base64(_ text: String) -> String { Base64.encode(Array(text.utf8)) }

    /// Uploads a byte under the metadata and returns path and file.
    private static func upload(
        _ metadata: String, _ server: RunningServer
    ) async throws -> (path: String, file: HTTPAnswer) {
        let path = try await server.tusUpload([
            ("Upload-Length", "1"), ("Upload-Metadata", metadata),
        ])
        _ = try await server.ask(.tusPatch(path, at: 0, [7]))
        return (path, try await server.get(path))
    }

    @Test(arguments: [
        "filename bmFtZQ==", "a,b ,c YQ==", "is_confidential", "  filename bmFtZQ==  , x eA==",
        "ünï bmFtZQ==",
    ])
    func `upload metadata comes back unchanged`(text: String) async throws {
        try await SharedServer.use { server in
            let (path, _) = try await Self.upload(text, server)
            let head = try await server.tusHead(path)
            let sent = text.trimmingCharacters(in: .whitespaces)
            #expect(head.field("Upload-Metadata") == sent)
        }
    }

    @Test(arguments: [
        ",", "a,,b", "a YQ==,", " ,a", "a YQ==,a YQ==", "a,a", "a YQ", "a Y Q==", "a YQ== x",
        "a YR==", "a !!!!", "a  YQ==", "a YQ== YQ==", "a Y-_=",
    ])
    func `malformed upload metadata is refused`(text: String) async throws {
        try await SharedServer.use { server in
            // Whitespace around a field is not part of its value, so extra pairs protect the text.
            let answer = try await server.ask(
                .tus(
                    "POST", "/tus/",
                    [("Upload-Length", "1"), ("Upload-Metadata", "z," + text + ",y")]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [[0xFC], [0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]])
    func `upload metadata that is not UTF-8 is refused`(
        bytes: [UInt8]
    ) async throws {
        try await SharedServer.use { server in
            let head = HTTPRequestBytes.tus(
                "POST", "/tus/", [("Upload-Length", "1"), ("Upload-Metadata", "KEY YQ==")]
            ).head
            let connection = try await server.connect()
            try await connection.send(head.replacing(Array("KEY".utf8), with: bytes))
            try expectProblem(try await connection.answer(), .badRequest)
        }
    }

    struct Name: Sendable {
        var metadata: String
        var fileName: String
    }

    @Test(arguments: [
        Name(metadata: "", fileName: "upload"), Name(metadata: "filename", fileName: "upload"),
        Name(metadata: "other YQ==", fileName: "upload"),
        Name(metadata: "filename " + base64("naïve.txt"), fileName: "naïve.txt"),
        Name(metadata: "name " + base64("b.txt"), fileName: "b.txt"),
        Name(
            metadata: "name \(base64("b.txt")),filename \(base64("a.txt"))", fileName: "a.txt"),
        Name(metadata: "filename " + base64("../../etc/passwd"), fileName: "passwd"),
        Name(metadata: "filename " + base64("a\\b\u{0}c"), fileName: "a_b_c"),
        Name(metadata: "filename /w==", fileName: "upload"),
    ])
    func `the file name comes from upload metadata`(name: Name) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload([
                ("Upload-Length", "1"), ("Upload-Metadata", name.metadata),
            ])
            let id = path.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            #expect(status.fileName == name.fileName)
        }
    }

    @Test(arguments: [
        ("filetype " + base64("text/html"), "text/html"),
        ("type " + base64("image/png"), "image/png"),
        ("filetype " + base64("text/plain; charset=utf-8"), "text/plain; charset=utf-8"),
        ("filetype", "application/octet-stream"),
        ("filetype " + base64("no type"), "application/octet-stream"),
        ("filetype " + base64("text/plain\r\nX: y"), "application/octet-stream"),
    ])
    func `the media type comes from upload metadata if it is well formed`(
        metadata: String, type: String
    ) async throws {
        try await SharedServer.use { server in
            let (_, file) = try await Self.upload(metadata, server)
            #expect(file.status == 200)
            #expect(file.field("Content-Type") == type)
            #expect(file.field("X") == nil)
        }
    }

    @Test func `upload metadata beyond the limit is refused`() async throws {
        try await SharedServer.use { server in
            let text = "a " + Self.base64(String(repeating: "x", count: 9000))
            let answer = try await server.ask(
                .tus("POST", "/tus/", [("Upload-Length", "1"), ("Upload-Metadata", text)]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `a native session shows its name and type as upload metadata`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(
                sampleBytes(10), fileName: "a.txt", mimeType: "text/plain")
            let head = try await server.tusHead("/tus/\(upload.id)")
            #expect(
                head.field("Upload-Metadata")
                    == "filename \(Self.base64("a.txt")),filetype \(Self.base64("text/plain"))")
        }
    }
}
