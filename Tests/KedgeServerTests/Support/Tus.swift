import KedgeModel
import KedgeTesting
import Testing

extension HTTPRequestBytes {
    /// A request of tus 1.0.
    static func tus(
        _ method: String, _ target: String = "/tus/", _ fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) -> HTTPRequestBytes {
        HTTPRequestBytes(method, target, [("Tus-Resumable", "1.0.0")] + fields, body: body)
    }

    /// Appends a body to a tus upload.
    static func tusPatch(
        _ target: String, at offset: Int, _ body: [UInt8], _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes {
        .tus(
            "PATCH", target,
            [
                ("Upload-Offset", "\(offset)"),
                ("Content-Type", "application/offset+octet-stream"),
            ] + fields, body: body)
    }

    /// The request with its body in HTTP chunks and a trailer field.
    func withTrailer(_ name: String, _ value: String) -> HTTPRequestBytes {
        var copy = chunked([body ?? []]).with([("Trailer", name)])
        copy.body?.removeLast(2)
        copy.body? += Array("\(name): \(value)\r\n\r\n".utf8)
        return copy
    }
}

extension HTTPAnswer {
    /// The path of `Location`, which is an absolute URL.
    var tusPath: String? {
        guard let address = field("Location"), address.hasPrefix("http://localhost/") else {
            return nil
        }
        return String(address.dropFirst("http://localhost".count))
    }
}

extension RunningServer {
    /// Makes a tus upload and returns its path.
    func tusUpload(_ fields: [(String, String)]) async throws -> String {
        let answer = try await ask(.tus("POST", "/tus/", fields))
        #expect(answer.status == 201)
        return try #require(answer.tusPath)
    }

    /// Makes a tus upload of this size and returns its path.
    func tusUpload(byteCount: Int) async throws -> String {
        try await tusUpload([("Upload-Length", "\(byteCount)")])
    }

    /// Makes a complete partial upload for concatenation and returns its path.
    func tusPart(_ content: [UInt8]) async throws -> String {
        let path = try await tusUpload([
            ("Upload-Length", "\(content.count)"), ("Upload-Concat", "partial"),
        ])
        if !content.isEmpty { _ = try await ask(.tusPatch(path, at: 0, content)) }
        return path
    }

    func tusHead(_ path: String) async throws -> HTTPAnswer {
        try await connect().ask(.tus("HEAD", path))
    }
}

/// Expects `HEAD` to report this offset.
func expectOffset(
    _ offset: Int, of path: String, on server: RunningServer,
    _ location: SourceLocation = #_sourceLocation
) async throws {
    let head = try await server.tusHead(path)
    #expect(head.status == 200, sourceLocation: location)
    #expect(head.field("Upload-Offset") == "\(offset)", sourceLocation: location)
}
