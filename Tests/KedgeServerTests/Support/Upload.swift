import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting

/// A file on its way into a server under test.
struct Upload: Sendable {
    let content: [UInt8]
    let chunkSize: Int
    let id: SessionID

    var path: String { "/uploads/sessions/\(id)" }
    var digest: SHA256Digest { SHA256Hasher.digest(of: content) }
    var chunkCount: Int { (content.count + chunkSize - 1) / chunkSize }

    func chunk(_ index: Int) -> [UInt8] {
        Array(content[(index * chunkSize)..<min((index + 1) * chunkSize, content.count)])
    }

    /// The request that sends a chunk, or the rest of it after some bytes.
    ///
    /// - Parameter end: End of the body in the chunk; the chunk's own end when nil.
    func put(_ index: Int, from skipped: Int = 0, upTo end: Int? = nil) -> HTTPRequestBytes {
        let chunk = chunk(index)
        let start = index * chunkSize
        let end = end ?? chunk.count
        let range = "bytes \(start + skipped)-\(start + end - 1)/\(content.count)"
        let hash = "sha256=\(SHA256Hasher.digest(of: chunk))"
        return HTTPRequestBytes(
            "PUT", "\(path)/chunks/\(index)",
            [("Content-Range", range), ("X-Chunk-Hash", hash)], body: Array(chunk[skipped..<end]))
    }

    /// The request that finalizes the session.
    func finalize(_ digest: SHA256Digest? = nil) -> HTTPRequestBytes {
        guard let digest else { return HTTPRequestBytes("POST", "\(path)/finalize") }
        return .json("POST", "\(path)/finalize", #"{"fileHashSha256":"\#(digest)"}"#)
    }
}

extension HTTPRequestBytes {
    /// A request with a JSON body, given as text so that it can be malformed.
    static func json(
        _ method: String, _ target: String, _ text: String, _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes {
        HTTPRequestBytes(
            method, target, [("Content-Type", "application/json")] + fields, body: Array(text.utf8))
    }

    /// `POST /uploads/sessions`
    static func createSession(
        _ message: CreateSessionRequest, _ fields: [(String, String)] = [],
        at target: String = "/uploads/sessions"
    ) throws -> HTTPRequestBytes {
        let body = try JSONEncoder().encode(message)
        return .json("POST", target, String(decoding: body, as: UTF8.self), fields)
    }
}

extension RunningServer {
    /// Begins an upload of the content.
    func begin(
        _ content: [UInt8], chunkSize: Int = 1000, fileName: String = "log.bin",
        mimeType: String? = nil, path: String? = nil, digest: SHA256Digest? = nil,
        adopting: SessionID? = nil
    ) async throws -> Upload {
        let answer = try await ask(
            .createSession(
                CreateSessionRequest(
                    fileName: fileName, fileSize: Int64(content.count), mimeType: mimeType,
                    chunkSize: Int64(chunkSize), fileHashSha256: digest,
                    metadata: path.map { [FilePath.metadataKey: $0] }, adoptSessionId: adopting)))
        let session = try answer.decoded(CreateSessionResponse.self)
        return Upload(content: content, chunkSize: chunkSize, id: session.sessionId)
    }

    func status(of upload: Upload) async throws -> SessionStatus {
        try await get(upload.path).decoded()
    }

    /// Uploads the content in chunks and makes it a file.
    func upload(
        _ content: [UInt8], chunkSize: Int = 1000, fileName: String = "log.bin",
        mimeType: String? = nil, path: String? = nil
    ) async throws -> FinalizeResponse {
        let upload = try await begin(
            content, chunkSize: chunkSize, fileName: fileName, mimeType: mimeType, path: path)
        let connection = try await connect()
        for index in 0..<upload.chunkCount { _ = try await connection.ask(upload.put(index)) }
        return try await connection.ask(upload.finalize()).decoded()
    }

    /// Sends the first bytes of a chunk and leaves; returns when the server has saved them.
    ///
    /// The sending side ends first, so the answer comes once the partial is saved.
    func breakOff(_ index: Int, of upload: Upload, after byteCount: Int) async throws {
        let connection = try await connect()
        let request = upload.put(index)
        try await connection.send(request.head + (request.body ?? []).prefix(byteCount))
        try await connection.finishSending()
        _ = try await connection.answer()
    }

    /// Begins to send a chunk and keeps the connection; returns when the server waits for the body.
    func hold(_ index: Int, of upload: Upload) async throws -> ClientConnection {
        let connection = try await connect()
        let request = upload.put(index)
        try await connection.send(
            request.with([
                ("Expect", "100-continue"), ("Content-Length", String(request.body?.count ?? 0)),
            ]).head)
        guard try await connection.answer().status == 100 else {
            throw ClientConnection.Failure.ended
        }
        return connection
    }
}

/// Pseudorandom bytes, equal for equal seeds.
func sampleBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SplitMix64(seed: seed)
    return generator.bytes(count)
}
