internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Operations on upload sessions: create, status, finalize, cancel.
struct SessionRoutes: Sendable {
    let engine: TransferEngine
    var links = SessionLinks.none
    var address = PublicAddress.ofRequests

    /// `POST /uploads/sessions`
    @Sendable func create(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let key = try IdempotencyKey.text(of: request)
        let offer = try Self.offer(of: request)
        let message = try await JSONBody.decode(CreateSessionRequest.self, from: request, context)
        guard message.metadata?.keys.contains(where: { $0.hasPrefix("kedge.") }) != true else {
            throw EngineError(
                .badRequest, "Metadata keys that begin with \"kedge.\" are reserved.")
        }
        let new = try NewSession(
            fileName: message.fileName, fileSize: message.fileSize, mimeType: message.mimeType,
            chunkSize: message.chunkSize, declaredDigest: message.fileHashSha256,
            metadata: message.metadata ?? [:], adopting: message.adoptSessionId,
            client: context.client
        ).permitted(to: context.principal, declaredName: message.fileName)
        let session = try await engine.createOrFindSession(
            new, owner: context.owner,
            idempotencyKey: try key.map { try IdempotencyKey($0, for: message) })
        let status = session.status
        context.logMetadata.set("session.id", status.sessionId)
        let path = "/uploads/sessions/\(status.sessionId)"
        let query = try await links.query(
            of: session.id, createdAt: session.createdAt, for: context.principal)
        var response = Response.json(
            CreateSessionResponse(
                sessionId: status.sessionId, expiresAt: status.expiresAt, state: status.state,
                fileSize: message.fileSize, chunkSize: status.chunkSize,
                totalChunks: status.totalChunks ?? 0, receivedBytes: status.receivedBytes,
                limits: engine.configuration.limits,
                requiredHeaders: ["Content-Range", "X-Chunk-Hash"],
                storedFiles: try await storedFiles(for: status, offer, context),
                uploadLink: query.isEmpty ? nil : address.url(path + query, asked: request)),
            status: .created)
        response.headers[.location] = path
        return response
    }

    /// `GET /uploads/sessions`
    @Sendable func list(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let limit = try ListLimit.count(of: request, standard: 50, max: 100)
        let cursor = try request.uri.queryParameters.get("after").map { text in
            guard let cursor = SessionCursor(opaque: text) else {
                throw EngineError(.badRequest, "after is not a cursor of this list.")
            }
            return cursor
        }
        let sessions = try await engine.unfinishedSessions(
            of: context.owner, after: cursor, limit: limit + 1)
        let page = sessions.prefix(limit)
        let next = sessions.count > page.count ? page.last.map { SessionCursor($0.record) } : nil
        return .json(
            SessionList(sessions: page.map { SessionSummary($0) }, next: next?.opaque))
    }

    /// `GET /uploads/sessions/{sessionId}`
    @Sendable func status(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        let form = try Self.statusForm(of: request)
        var status = try await engine.sessionStatus(
            id, owner: context.owner, withDigests: form == .digests)
        if context.principal.link != nil, let file = status.remoteFileId {
            try await requireLink(after: file, context)
        }
        status.limits = engine.configuration.limits
        status.storedFiles = try await storedFiles(for: status, Self.offer(of: request), context)
        return .json(text: status.text(form))
    }

    /// `POST /uploads/sessions/{sessionId}/finalize`
    @Sendable func finalize(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        let message = try await JSONBody.decode(
            FinalizeRequest.self, from: request, context, whenEmpty: FinalizeRequest())
        let outcome = try await engine.finalize(
            id, owner: context.owner, expecting: message.fileHashSha256,
            reusesStoredFiles: context.principal.scopes.contains(.filesRead))
        switch outcome {
        case .completed(let file):
            context.logMetadata.set("file.id", file.id)
            try context.requireLink(after: file, at: engine.now)
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
        context.logMetadata.set("session.id", id)
        try await engine.cancelSession(id, owner: context.owner)
        return Response(status: .noContent)
    }

    /// Refuses the link of a session that became this file more than a day ago.
    private func requireLink(after file: FileID, _ context: KedgeRequestContext) async throws {
        do {
            try context.requireLink(
                after: try await engine.file(file, owner: context.owner), at: engine.now)
        } catch let error as EngineError where [.fileGone, .fileDamaged].contains(error.code) {
            // The status says no more than that the session is completed.
        }
    }

    /// Files that the session may be, for a client that asked for them.
    private func storedFiles(
        for status: SessionStatus, _ offer: StoredFileOffer?, _ context: KedgeRequestContext
    ) async throws -> [StoredFile]? {
        // A principal that may only upload learns nothing about stored files.
        guard let offer, status.state == .open, status.receivedBytes == 0,
            context.principal.scopes.contains(.filesRead)
        else { return nil }
        return try await engine.storedFiles(
            for: status.sessionId, owner: context.owner, firstChunk: offer.firstChunk)
    }

    /// The offer that a request asks for by `storedFiles=true`; nil for none.
    private static func offer(of request: Request) throws -> StoredFileOffer? {
        let query = request.uri.queryParameters
        let text = query.get("firstChunkSha256")
        let digest = text.flatMap { SHA256Digest(hex: $0) }
        guard (text == nil) == (digest == nil) else {
            throw EngineError(.badRequest, "firstChunkSha256 must be a SHA-256 in hexadecimal.")
        }
        switch Set(query[values: "storedFiles"]) {
        case [], ["false"]: return nil
        case ["true"]: return StoredFileOffer(firstChunk: digest)
        default: throw EngineError(.badRequest, "storedFiles must be true or false.")
        }
    }

    /// A client's question for files that an empty session may be.
    private struct StoredFileOffer {
        /// The digest of the first chunk that the files must have; nil for any.
        var firstChunk: SHA256Digest?
    }

    /// The requested form of the status. `chunks=ranges` is the short form; `chunks=digests` is one
    /// that a file can be compared with.
    private static func statusForm(of request: Request) throws -> SessionStatus.Form {
        let asked = Set(request.uri.queryParameters[values: "chunks"])
        switch asked {
        case []: return .full
        case ["ranges"]: return .ranges
        case ["digests"]: return .digests
        default: throw EngineError(.badRequest, "chunks must be ranges or digests.")
        }
    }
}

extension SessionSummary {
    init(_ session: UnfinishedUpload) {
        let record = session.record
        self.init(
            sessionId: record.id, fileName: record.fileName, path: record.path,
            fileSize: record.fileSize, receivedBytes: session.receivedByteCount,
            state: record.state, createdAt: record.createdAt, expiresAt: record.expiresAt)
    }
}

extension SessionCursor {
    /// The cursor as text for clients to send back. Its format may change.
    var opaque: String { FileCursor(createdAt: createdAt, id: FileID(wellFormed: id.text)).opaque }

    init?(opaque text: String) {
        guard let cursor = FileCursor(opaque: text), cursor.path == nil else { return nil }
        self.init(createdAt: cursor.createdAt, id: SessionID(wellFormed: cursor.id.text))
    }
}

extension FinalizeResponse {
    init(_ file: FileRecord) {
        self.init(
            remoteFileId: file.id, fileHashSha256: file.digest, size: file.byteCount,
            etag: file.etag)
    }
}
