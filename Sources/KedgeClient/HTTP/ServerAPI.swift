internal import Foundation
internal import HTTPTypes
package import KedgeModel
package import KedgeTransport

/// The client side of the native HTTP protocol: one method per call, values in and out.
///
/// Retries nothing; every failure is a ``RequestFailure``.
package struct ServerAPI: Sendable {
    /// Base URL without a trailing slash.
    let baseURL: String
    /// Bearer token; never logged or stored.
    let token: String?
    let transport: any HTTPTransport

    package init(
        baseURL: String,
        token: String?,
        transport: any HTTPTransport
    ) {
        self.baseURL = baseURL
        self.token = token
        self.transport = transport
    }

    /// Sends requests with the credentials for this server.
    var sender: RequestSender {
        RequestSender(
            credentials: ServerCredentials(home: baseURL, token: token), transport: transport)
    }

    /// Longest error body that is read.
    private static let maxProblemByteCount = 64 << 10
    /// Longest body of an answer whose size does not depend on the file.
    private static let maxMessageByteCount = 1 << 20
    /// Finalizing and creating a session may be slow on a busy server.
    private static let longStallTimeout = Duration.seconds(120)

    package struct Answered<Value: Sendable>: Sendable {
        let value: Value
        let answer: ServerAnswer
    }

    func createSession(
        _ request: CreateSessionRequest, idempotencyKey: String
    ) async throws -> Answered<CreateSessionResponse> {
        let call = Call("create session", .post, "/uploads/sessions", .session)
        return try await exchange(
            call, fields: [.idempotencyKey: idempotencyKey], json: try encode(request))
    }

    /// Requests the short form of the status; an older server answers with the full one.
    ///
    /// - Parameter chunkCount: Bounds the size of the answer.
    package func sessionStatus(
        _ id: SessionID, chunkCount: Int
    ) async throws -> Answered<SessionStatus> {
        let call = Call(
            "session status", .get, "/uploads/sessions/\(id.text)?chunks=ranges", .session)
        return try await exchange(
            call, maxBytes: Self.maxMessageByteCount + chunkCount * 64)
    }

    /// Requests the form of the status with the digests of all chunks.
    func sessionDigests(_ id: SessionID) async throws -> Answered<SessionStatus> {
        let call = Call(
            "session status", .get, "/uploads/sessions/\(id.text)?chunks=digests", .session)
        // A digest takes 67 bytes, a run of one chunk at most 20.
        return try await exchange(
            call, maxBytes: Self.maxMessageByteCount + ChunkLayout.maxChunkCount * 90)
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
        let call = Call(
            "put chunk", .put, "/uploads/sessions/\(session.text)/chunks/\(index)", .session)
        var fields: HTTPFields = [
            .contentRange: ContentRange(range: bytes, total: total).description,
            .chunkHash: DigestHeader.chunkHash(digest),
            .contentType: "application/octet-stream",
        ]
        if asksFirst { fields[.expect] = "100-continue" }
        let response = try await send(call, fields: fields, body: body, onBytesSent: onBytesSent)
        let content = try await collect(response, call, limit: Self.maxMessageByteCount)
        let answer = response.answer
        let value: ChunkAnswer =
            response.status == 202
            ? .part(try decode(content, call, answer)) : .whole(try decode(content, call, answer))
        return Answered(value: value, answer: answer)
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
        let call = Call("finalize", .post, "/uploads/sessions/\(id.text)/finalize", .session)
        let body = try encode(FinalizeRequest(fileHashSha256: digest))
        let response = try await send(
            call, fields: [.contentType: "application/json"], body: .bytes(body))
        let bytes = try await collect(response, call, limit: Self.maxMessageByteCount)
        let answer = response.answer
        if response.status == 202 {
            let pending: FinalizePending = try decode(bytes, call, answer)
            let wait = RetryAfter.parse(response.headerFields[.retryAfter], now: .current)
            return Answered(
                value: .pending(verifiedBytes: pending.verifiedBytes, wait: wait ?? .seconds(1)),
                answer: answer)
        }
        return Answered(value: .done(try decode(bytes, call, answer)), answer: answer)
    }

    package func deleteSession(_ id: SessionID) async throws {
        try await perform(Call("delete session", .delete, "/uploads/sessions/\(id.text)", .session))
    }

    func fileMeta(_ id: FileID) async throws -> Answered<FileMeta> {
        try await exchange(Call("file meta", .get, "/files/\(id.text)/meta", .file))
    }

    /// - Parameter chunkCount: Bounds the size of the answer.
    func fileChunks(_ id: FileID, chunkCount: Int) async throws -> Answered<FileChunks> {
        try await exchange(
            Call("file chunks", .get, "/files/\(id.text)/chunks", .file),
            maxBytes: Self.maxMessageByteCount + chunkCount * 80)
    }

    func listFiles(
        after: String?, limit: Int?, onlyDamaged: Bool
    ) async throws -> Answered<FileList> {
        var query: [String] = []
        if let after { query.append("after=\(URLText.escapeQuery(after))") }
        if let limit { query.append("limit=\(limit)") }
        if onlyDamaged { query.append("damaged=true") }
        let suffix = query.isEmpty ? "" : "?" + query.joined(separator: "&")
        return try await exchange(
            Call("list files", .get, "/files\(suffix)", .file), maxBytes: 16 << 20)
    }

    func deleteFile(_ id: FileID) async throws {
        try await perform(Call("delete file", .delete, "/files/\(id.text)", .file))
    }

    func checkReadiness() async throws {
        try await perform(Call("check readiness", .get, "/readyz", .file))
    }

    func fileURL(_ id: FileID) -> String { "\(baseURL)/files/\(id.text)" }
}

// MARK: - One exchange

extension ServerAPI {
    /// A request without its content.
    struct Call: Sendable {
        let operation: String
        let method: HTTPRequest.Method
        let path: String
        let subject: RequestFailure.Subject

        init(
            _ operation: String, _ method: HTTPRequest.Method, _ path: String,
            _ subject: RequestFailure.Subject
        ) {
            self.operation = operation
            self.method = method
            self.path = path
            self.subject = subject
        }
    }

    private func exchange<Value: Decodable & Sendable>(
        _ call: Call, fields: HTTPFields = [:], json: [UInt8]
    ) async throws -> Answered<Value> {
        var fields = fields
        fields[.contentType] = "application/json"
        return try await exchange(call, fields: fields, body: .bytes(json))
    }

    private func exchange<Value: Decodable & Sendable>(
        _ call: Call, fields: HTTPFields = [:], body: TransportBody? = nil,
        maxBytes: Int = maxMessageByteCount
    ) async throws -> Answered<Value> {
        let response = try await send(call, fields: fields, body: body)
        let bytes = try await collect(response, call, limit: maxBytes)
        let answer = response.answer
        return Answered(value: try decode(bytes, call, answer), answer: answer)
    }

    /// Makes a call whose answer has no content.
    private func perform(_ call: Call) async throws {
        let response = try await send(call, fields: [:], body: nil)
        _ = try await collect(response, call, limit: Self.maxMessageByteCount)
    }

    func send(
        _ call: Call, fields: HTTPFields, body: TransportBody?,
        onBytesSent: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> ServerReply {
        var fields = fields
        fields[.accept] = "application/json, application/problem+json"
        let request = TransportRequest(
            method: call.method, url: baseURL + call.path, headerFields: fields, body: body,
            stallTimeout: call.method == .post ? Self.longStallTimeout : nil,
            onBytesSent: onBytesSent)
        return try await sender.send(
            request, operation: call.operation, redirects: .refusedAsForeign)
    }

    /// Reads the body of a success, or throws the failure that another answer stands for.
    private func collect(
        _ response: ServerReply, _ call: Call, limit: Int
    ) async throws -> [UInt8] {
        let isSuccess = (200...299).contains(response.status)
        do {
            let bytes = try await response.body.collect(
                upTo: isSuccess ? limit : Self.maxProblemByteCount)
            guard !isSuccess else { return bytes }
            throw RequestFailure(
                response, body: bytes, operation: call.operation, subject: call.subject)
        } catch let error as TransportError {
            // The status of a failure counts even when its explanation did not arrive.
            guard isSuccess || error.kind == .canceled else {
                throw RequestFailure(
                    response, body: [], operation: call.operation, subject: call.subject)
            }
            throw RequestFailure(
                error, operation: call.operation, answer: response.answer)
        }
    }

    private func encode(_ value: some Encodable) throws -> [UInt8] {
        Array(try JSONEncoder().encode(value))
    }

    /// - Throws: `NOT_KEDGE` for anything but JSON, such as the log-in page of a captive portal;
    ///   `PROTOCOL_VIOLATION` for JSON that is not the answer to the call.
    private func decode<Value: Decodable>(
        _ bytes: [UInt8], _ call: Call, _ answer: ServerAnswer
    ) throws -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            let isJSON = bytes.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
            var failure = RequestFailure(
                isJSON ? .protocolViolation : .notKedge, operation: call.operation, answer: answer)
            (failure.isForeign, failure.isFromIntermediary) = (true, !isJSON)
            throw failure
        }
    }
}
