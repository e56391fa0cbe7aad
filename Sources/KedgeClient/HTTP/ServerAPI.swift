internal import Foundation
internal import HTTPTypes
package import KedgeModel
package import KedgeTransport

/// The client side of the native HTTP protocol: one method per call, values in and out.
///
/// Retries nothing; every failure is a ``RequestFailure``.
package struct ServerAPI: Sendable {
    /// Exchange with the credentials for this server.
    let exchange: ServerExchange

    /// - Parameters:
    ///   - baseURL: Base URL without a trailing slash.
    ///   - tokens: Tokens in place of `token`; nil for that one.
    package init(
        baseURL: String,
        token: String?,
        tokens: TokenSource? = nil,
        transport: any HTTPTransport
    ) {
        exchange = ServerExchange(
            credentials: ServerCredentials(home: baseURL, token: token), tokens: tokens,
            transport: transport)
    }

    /// Returns the interface to the same server with a link as the only credential.
    func authorized(byLink text: String) -> ServerAPI {
        ServerAPI(baseURL: baseURL, token: text, transport: exchange.transport)
    }

    /// Base URL without a trailing slash.
    var baseURL: String { exchange.credentials.home }

    /// Longest body of an answer whose size does not depend on the file.
    static let maxMessageByteCount = 1 << 20

    package struct Answered<Value: Sendable>: Sendable {
        let value: Value
        let answer: ServerAnswer
    }

    /// - Parameter offersStoredFiles: Asks for files that the session may be.
    func createSession(
        _ request: CreateSessionRequest, idempotencyKey: String, offersStoredFiles: Bool = false
    ) async throws -> Answered<CreateSessionResponse> {
        let call = call(
            "create session", .post,
            "/uploads/sessions" + (offersStoredFiles ? "?storedFiles=true" : ""),
            fields: [.idempotencyKey: idempotencyKey, .contentType: "application/json"],
            body: .bytes(try encode(request)))
        return try await value(of: call, about: .session)
    }

    /// Requests the short form of the status; an older server answers with the full one.
    ///
    /// - Parameters:
    ///   - chunkCount: Bounds the size of the answer.
    ///   - storedFiles: The files to ask for that an empty session may be; nil for none.
    package func sessionStatus(
        _ id: SessionID, chunkCount: Int, storedFiles: StoredFileQuery? = nil
    ) async throws -> Answered<SessionStatus> {
        try await value(
            of: call(
                "session status", .get,
                "/uploads/sessions/\(id.text)?chunks=ranges"
                    + (storedFiles.map { "&\($0.text)" } ?? "")),
            about: .session, maxBytes: Self.maxMessageByteCount + chunkCount * 64)
    }

    /// The stored files that a client asks for.
    package enum StoredFileQuery: Sendable {
        case any
        /// Those whose first chunk has this digest.
        case beginning(with: SHA256Digest)

        var text: String {
            switch self {
            case .any: "storedFiles=true"
            case .beginning(let digest): "storedFiles=true&firstChunkSha256=\(digest.hex)"
            }
        }
    }

    /// Requests the form of the status with the digests of all chunks.
    func sessionDigests(_ id: SessionID) async throws -> Answered<SessionStatus> {
        // A digest takes 67 bytes, a run of one chunk at most 20.
        try await value(
            of: call("session status", .get, "/uploads/sessions/\(id.text)?chunks=digests"),
            about: .session, maxBytes: Self.maxMessageByteCount + ChunkLayout.maxChunkCount * 90)
    }

    /// The result of sending the body of a chunk.
    package enum ChunkAnswer: Sendable {
        case whole(ChunkReceipt)
        /// The body ended before the chunk does; its bytes are durable.
        case part(PartialChunk)
    }

    /// Sends a chunk, or a part of one.
    ///
    /// - Parameters:
    ///   - bytes: Range of the bytes sent; a part lies inside the chunk.
    ///   - digest: SHA-256 of the whole chunk, even for a part.
    ///   - asksFirst: Sends the body only after the server has seen the start offset (RFC 9110
    ///     section 10.1.1). A server that expects another offset rejects it at once.
    package func putChunk(
        _ index: Int, of session: SessionID, bytes: ByteRange, total: Int64, digest: SHA256Digest,
        body: TransportBody, asksFirst: Bool = false,
        onBytesSent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Answered<ChunkAnswer> {
        var fields: HTTPFields = [
            .contentRange: ContentRange(range: bytes, total: total).description,
            .chunkHash: DigestHeader.chunkHash(digest),
            .contentType: "application/octet-stream",
        ]
        if asksFirst { fields[.expect] = "100-continue" }
        var call = call(
            "put chunk", .put, "/uploads/sessions/\(session.text)/chunks/\(index)",
            fields: fields, body: body)
        call.onBytesSent = onBytesSent
        let reply = try await success(of: call, about: .session)
        let value: ChunkAnswer =
            reply.status == 202
            ? .part(try decode(reply, call)) : .whole(try decode(reply, call))
        return Answered(value: value, answer: reply.answer)
    }

    /// The answer to a finalize request.
    package enum Finalization: Sendable {
        case done(FinalizeResponse)
        /// Finalizing continues; ask again after the wait.
        case pending(verifiedBytes: Int64, wait: Duration)
    }

    package func finalize(
        _ id: SessionID, digest: SHA256Digest
    ) async throws -> Answered<Finalization> {
        let call = call(
            "finalize", .post, "/uploads/sessions/\(id.text)/finalize",
            fields: [.contentType: "application/json"],
            body: .bytes(try encode(FinalizeRequest(fileHashSha256: digest))))
        let reply = try await success(of: call, about: .session)
        if reply.status == 202 {
            let pending: FinalizePending = try decode(reply, call)
            let wait = RetryAfter.parse(reply.fields[.retryAfter], now: .current)
            return Answered(
                value: .pending(verifiedBytes: pending.verifiedBytes, wait: wait ?? .seconds(1)),
                answer: reply.answer)
        }
        return Answered(value: .done(try decode(reply, call)), answer: reply.answer)
    }

    package func deleteSession(_ id: SessionID) async throws {
        let call = call("delete session", .delete, "/uploads/sessions/\(id.text)")
        _ = try await success(of: call, about: .session)
    }

    func fileMeta(_ id: FileID) async throws -> Answered<FileMeta> {
        try await value(of: call("file meta", .get, "/files/\(id.text)/meta"), about: .file)
    }

    /// - Parameter chunkCount: Bounds the size of the answer.
    func fileChunks(_ id: FileID, chunkCount: Int) async throws -> Answered<FileChunks> {
        try await value(
            of: call("file chunks", .get, "/files/\(id.text)/chunks"), about: .file,
            maxBytes: Self.maxMessageByteCount + chunkCount * 80)
    }

    func listFiles(
        prefix: String?, after: String?, limit: Int?, onlyDamaged: Bool
    ) async throws -> Answered<FileList> {
        var query: [String] = []
        if let prefix { query.append("prefix=\(URLText.escapeQuery(prefix))") }
        if let after { query.append("after=\(URLText.escapeQuery(after))") }
        if let limit { query.append("limit=\(limit)") }
        if onlyDamaged { query.append("damaged=true") }
        let suffix = query.isEmpty ? "" : "?" + query.joined(separator: "&")
        return try await value(
            of: call("list files", .get, "/files\(suffix)"), about: .file, maxBytes: 16 << 20)
    }

    func listSessions(
        after: String?, limit: Int?
    ) async throws -> Answered<SessionList> {
        var query: [String] = []
        if let after { query.append("after=\(URLText.escapeQuery(after))") }
        if let limit { query.append("limit=\(limit)") }
        let suffix = query.isEmpty ? "" : "?" + query.joined(separator: "&")
        return try await value(
            of: call("list sessions", .get, "/uploads/sessions\(suffix)"), about: .session)
    }

    func deleteFile(_ id: FileID) async throws {
        let call = call("delete file", .delete, "/files/\(id.text)")
        _ = try await success(of: call, about: .file)
    }

    func checkReadiness() async throws {
        _ = try await success(of: call("check readiness", .get, "/readyz"), about: .file)
    }

    func fileURL(_ id: FileID) -> String { "\(baseURL)/files/\(id.text)" }
}

// MARK: - One exchange

extension ServerAPI {
    /// Describes a call of the native protocol.
    func call(
        _ operation: String, _ method: HTTPRequest.Method, _ path: String,
        fields: HTTPFields = [:], body: TransportBody? = nil
    ) -> ServerCall {
        var fields = fields
        fields[.accept] = "application/json, application/problem+json"
        var call = ServerCall(
            operation, method, baseURL + path, redirects: .refusedAsForeign, fields: fields,
            body: body)
        // Finalizing and creating a session may be slow on a busy server.
        call.mayTakeLong = method == .post
        return call
    }

    /// Makes a call whose answer is a value.
    func value<Value: Decodable & Sendable>(
        of call: ServerCall, about subject: RequestFailure.Subject,
        maxBytes: Int = maxMessageByteCount
    ) async throws -> Answered<Value> {
        let reply = try await success(of: call, about: subject, maxBytes: maxBytes)
        return Answered(value: try decode(reply, call), answer: reply.answer)
    }

    /// Makes a call and throws any unsuccessful answer.
    func success(
        of call: ServerCall, about subject: RequestFailure.Subject,
        maxBytes: Int = maxMessageByteCount
    ) async throws -> ServerMessage {
        try await exchange.success(
            of: call, about: subject, reading: .whole(maxByteCount: maxBytes))
    }

    func encode(_ value: some Encodable) throws -> [UInt8] {
        Array(try JSONEncoder().encode(value))
    }

    /// - Throws: `NOT_KEDGE` for anything but JSON, such as the log-in page of a captive portal;
    ///   `PROTOCOL_VIOLATION` for JSON that is not the answer to the call.
    private func decode<Value: Decodable>(
        _ reply: ServerMessage, _ call: ServerCall
    ) throws -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(reply.body))
        } catch {
            let isJSON = reply.body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
            throw RequestFailure(
                isJSON ? .protocolViolation : .notKedge, operation: call.operation,
                answer: reply.answer, isForeign: true, isFromIntermediary: !isJSON)
        }
    }
}
