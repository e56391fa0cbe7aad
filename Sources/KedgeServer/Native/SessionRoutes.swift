internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// Creating, asking for, finalizing and cancelling upload sessions.
struct SessionRoutes: Sendable {
    let engine: TransferEngine

    /// `POST /uploads/sessions`
    @Sendable func create(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let key = try Self.idempotencyKey(of: request)
        let message = try await JSONBody.decode(CreateSessionRequest.self, from: request, context)
        let status = try await engine.createSession(
            NewSession(
                fileName: message.fileName, fileSize: message.fileSize,
                mimeType: message.mimeType, chunkSize: message.chunkSize,
                declaredDigest: message.fileHashSha256, metadata: message.metadata ?? [:],
                adopting: message.adoptSessionId),
            owner: context.principal.owner,
            idempotencyKey: try key.map {
                IdempotencyKey(key: $0, fingerprint: try Self.fingerprint(of: message))
            })
        context.notes.set("session.id", status.sessionId)
        var response = Response.json(
            CreateSessionResponse(
                sessionId: status.sessionId, expiresAt: status.expiresAt, state: status.state,
                fileSize: message.fileSize, chunkSize: status.chunkSize,
                totalChunks: status.totalChunks ?? 0, receivedBytes: status.receivedBytes,
                limits: engine.configuration.limits,
                requiredHeaders: ["Content-Range", "X-Chunk-Hash"]),
            status: .created)
        response.headers[.location] = "/uploads/sessions/\(status.sessionId)"
        return response
    }

    /// `GET /uploads/sessions/{sessionId}`
    @Sendable func status(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.notes.set("session.id", id)
        let form = try Self.statusForm(of: request)
        let status = try await engine.sessionStatus(id, owner: context.principal.owner)
        return .json(text: status.text(form))
    }

    /// `POST /uploads/sessions/{sessionId}/finalize`
    @Sendable func finalize(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.notes.set("session.id", id)
        let message = try await JSONBody.decode(
            FinalizeRequest.self, from: request, context, whenEmpty: FinalizeRequest())
        let outcome = try await engine.finalize(
            id, owner: context.principal.owner, expecting: message.fileHashSha256)
        switch outcome {
        case .completed(let file):
            context.notes.set("file.id", file.id)
            return .json(FinalizeResponse(file))
        case .pending(let verifiedBytes):
            var response = Response.json(
                FinalizePending(sessionId: id, state: .open, verifiedBytes: verifiedBytes),
                status: .accepted)
            response.headers[.retryAfter] = "1"
            return response
        }
    }

    /// `DELETE /uploads/sessions/{sessionId}`
    @Sendable func cancel(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.notes.set("session.id", id)
        try await engine.cancelSession(id, owner: context.principal.owner)
        return Response(status: .noContent)
    }

    /// `chunks=ranges` asks for the short form.
    private static func statusForm(of request: Request) throws -> SessionStatus.Form {
        let asked = request.uri.queryParameters[values: "chunks"]
        guard asked.allSatisfy({ $0 == "ranges" }) else {
            throw EngineError(.badRequest, "chunks can only be ranges.")
        }
        return asked.isEmpty ? .full : .ranges
    }

    /// The key as a structured-field string or as bare text: 1 to 255 visible ASCII characters.
    private static func idempotencyKey(of request: Request) throws -> String? {
        guard var key = request.headers[.idempotencyKey] else { return nil }
        if key.count >= 2, key.hasPrefix("\""), key.hasSuffix("\"") {
            key = String(key.dropFirst().dropLast())
        }
        guard (1...255).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw EngineError(
                .badRequest, "Idempotency-Key is 1 to 255 visible ASCII characters.")
        }
        return key
    }

    private static func fingerprint(of message: CreateSessionRequest) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return SHA256Hasher.digest(of: Array(try encoder.encode(message))).hex
    }
}

extension FinalizeResponse {
    init(_ file: FileRecord) {
        self.init(
            remoteFileId: file.id, fileHashSha256: file.digest, size: file.byteCount,
            etag: file.etag)
    }
}
