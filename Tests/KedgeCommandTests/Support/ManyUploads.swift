import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Bytes in chunks that tests upload with raw requests. They are hashed once for all sessions.
struct RawFile: Sendable {
    let content: [UInt8]
    let chunkByteCount: Int
    private let digests: [SHA256Digest]

    init(byteCount: Int, chunkByteCount: Int, seed: UInt64) {
        let content = SampleFile.bytes(byteCount, seed: seed)
        self.content = content
        self.chunkByteCount = chunkByteCount
        digests = stride(from: 0, to: byteCount, by: chunkByteCount).map { start in
            SHA256Hasher.digest(of: Array(content[start..<min(start + chunkByteCount, byteCount)]))
        }
    }

    var chunkCount: Int { digests.count }
    var digest: SHA256Digest { SHA256Hasher.digest(of: content) }

    func range(ofChunk index: Int) -> Range<Int> {
        let start = index * chunkByteCount
        return start..<min(start + chunkByteCount, content.count)
    }

    /// The head of the request that sends a chunk, or the rest of it after some bytes.
    func head(ofChunk index: Int, from skipped: Int = 0, path: String) -> HTTPMessage {
        let range = range(ofChunk: index)
        let (first, last) = (range.lowerBound + skipped, range.upperBound - 1)
        var head = HTTPMessage("PUT \(path)/chunks/\(index) HTTP/1.1")
        head["Host"] = "localhost"
        head["Content-Range"] = "bytes \(first)-\(last)/\(content.count)"
        head["X-Chunk-Hash"] = "sha256=\(digests[index])"
        head["Content-Length"] = "\(range.count - skipped)"
        return head
    }
}

/// A session whose requests a test sends itself.
struct RawUpload: Sendable {
    let file: RawFile
    let id: SessionID

    var path: String { "/uploads/sessions/\(id)" }

    /// Begins an upload of the file.
    init(_ file: RawFile, to server: Server) throws {
        self.file = file
        let message = CreateSessionRequest(
            fileName: "many.bin", fileSize: Int64(file.content.count),
            chunkSize: Int64(file.chunkByteCount))
        let body = Array(try JSONEncoder().encode(message))
        let answer = try server.ask("POST /uploads/sessions", json: body)
        id = try answer.decoded(CreateSessionResponse.self).sessionId
    }

    func status(at server: Server) throws -> SessionStatus {
        try server.ask("GET \(path)").decoded()
    }

    /// Sends a chunk, or the rest of it after some bytes, and expects it to be stored as new.
    func send(
        _ index: Int, from skipped: Int = 0, to server: Server,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var request = file.head(ofChunk: index, from: skipped, path: path)
        request.body = Array(file.content[file.range(ofChunk: index)].dropFirst(skipped))
        request.delimitByLength()
        let answer = HTTPMessage.exchange(request, with: server.port)
        #expect(answer?.status == 201, sourceLocation: sourceLocation)
    }

    /// Sends the missing bytes from the offsets that the server reports, finalizes the session, and
    /// expects the right file.
    func expectFinished(
        at server: Server, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let status = try status(at: server)
        for index in 0..<file.chunkCount where !status.receivedChunks.contains(index) {
            let partial = status.partialChunks.first { $0.index == index }
            try send(
                index, from: Int(partial?.receivedBytes ?? 0), to: server,
                sourceLocation: sourceLocation)
        }
        // 202 means that the server still computes the hash of the file.
        let answer: HTTPMessage = try await eventually("the file is made") {
            let answer = try server.ask("POST \(path)/finalize")
            return answer.status == 202 ? nil : answer
        }
        #expect(answer.status == 200, sourceLocation: sourceLocation)
        let made = try answer.decoded(FinalizeResponse.self)
        #expect(made.fileHashSha256 == file.digest, sourceLocation: sourceLocation)
        #expect(made.size == Int64(file.content.count), sourceLocation: sourceLocation)
    }
}

extension Server {
    /// Asks on a connection of its own.
    ///
    /// - Throws: `TestFailure` when no complete answer comes.
    func ask(_ request: String, json body: [UInt8] = []) throws -> HTTPMessage {
        var message = HTTPMessage("\(request) HTTP/1.1", body: body)
        message["Host"] = "localhost"
        if !body.isEmpty { message["Content-Type"] = "application/json" }
        message.delimitByLength()
        guard let answer = HTTPMessage.exchange(message, with: port) else {
            throw TestFailure("no answer to \(request)")
        }
        return answer
    }
}

extension HTTPMessage {
    /// Decodes the body as JSON.
    func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(body))
    }

    /// Expects a problem document with the code, the end of the connection, and `Retry-After`.
    func expectToAskAgain(
        _ code: ErrorCode, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(status == code.facts.httpStatus, sourceLocation: sourceLocation)
        #expect(
            try decoded(ProblemDocument.self).code == code.rawValue, sourceLocation: sourceLocation)
        #expect(self["Connection"] == "close", sourceLocation: sourceLocation)
        #expect(
            self["Retry-After"].flatMap { Int($0) } ?? 0 > 0, sourceLocation: sourceLocation)
    }
}
