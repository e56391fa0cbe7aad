internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Operations on whole files: upload in one request, list, metadata, chunk digests, delete.
struct FileRoutes: Sendable {
    let engine: TransferEngine
    var links = SessionLinks.none

    /// `POST /files`: stores the body as a file. Also starts a resumable upload for clients that
    /// support one.
    @Sendable func ingest(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let call = ResumableUploadCall(request.headers)
        if call.beginsUpload {
            return try await ResumableUploadRoutes(engine: engine, links: links)
                .create(request, context, call)
        }
        let body = try RequestByteBody(request, context: context)
        let (digest, checksum) = try ResumableUploadDigests.whole(request.headers)
        let new = try NewSession(
            fileName: ContentDisposition.fileName(of: request),
            fileSize: body.announcedByteCount,
            mimeType: request.headers[.contentType], client: context.client
        ).permitted(
            to: context.principal,
            declaredName: ContentDisposition.declaredFileName(of: request))
        let file = try await engine.ingest(
            new, owner: context.owner, expecting: digest, checksum: checksum,
            body: body)
        context.logMetadata.set("file.id", file.id)
        var response = Response.created(file)
        // A client that declares the upload complete gets this confirmed.
        if call.completes == true { response.headers.set(call.stateFields(isComplete: true)) }
        return response
    }

    /// `GET /files`
    @Sendable func list(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let limit = try ListLimit.count(of: request, standard: 100, max: 1000)
        let cursor = try request.uri.queryParameters.get("after").map { text in
            guard let cursor = FileCursor(opaque: String(text)) else {
                throw EngineError(.badRequest, "after is not a cursor of this list.")
            }
            return cursor
        }
        let (owner, count) = (context.owner, limit + 1)
        let onlyDamaged = try Self.asksForDamaged(request)
        let prefix = try Self.prefix(of: request)
        guard cursor == nil || (cursor?.path == nil) == (prefix == nil) else {
            throw EngineError(.badRequest, "after is a cursor of a list with another order.")
        }
        let files: [FileRecord]
        if let prefix {
            guard !onlyDamaged else {
                throw EngineError(.badRequest, "prefix and damaged cannot be combined.")
            }
            files = try await engine.files(of: owner, under: prefix, after: cursor, limit: count)
        } else {
            files = try await engine.files(
                of: owner, after: cursor, limit: count, onlyDamaged: onlyDamaged)
        }
        let page = files.prefix(limit)
        var next = files.count > page.count ? page.last.map { FileCursor($0) } : nil
        if prefix == nil { next?.path = nil }
        return .json(FileList(files: page.map { FileMeta($0) }, next: next?.opaque))
    }

    private static func prefix(of request: Request) throws -> PathPrefix? {
        guard let text = request.uri.queryParameters.get("prefix") else { return nil }
        guard FilePath.isStorable(text) else {
            throw EngineError(
                .badRequest,
                "prefix has a NUL or more than \(FilePath.maxByteCount) bytes.")
        }
        return PathPrefix(text)
    }

    private static func asksForDamaged(_ request: Request) throws -> Bool {
        switch request.uri.queryParameters.get("damaged") {
        case nil, "false": false
        case "true": true
        default: throw EngineError(.badRequest, "damaged must be true or false.")
        }
    }

    /// `GET /files/{fileId}/meta`
    @Sendable func meta(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let file = try await engine.file(context.fileID(), owner: context.owner)
        return .json(FileMeta(file))
    }

    /// `GET /files/{fileId}/chunks`
    @Sendable func chunks(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.fileID()
        try await requireOwnFile(id, context)
        let file = try await engine.file(id, owner: context.owner)
        try context.requireLink(after: file, at: engine.now)
        let digests = try await engine.chunkDigests(of: file)
        return .json(FileChunks(chunkSize: file.chunkSize, sha256: digests))
    }

    /// Refuses every file but the one that the session of a link has become, as if there were none.
    private func requireOwnFile(_ id: FileID, _ context: KedgeRequestContext) async throws {
        guard case .session(let linked)? = context.principal.link?.grant else { return }
        do {
            let view = try await engine.uploadView(of: linked.session, owner: context.owner)
            if view.fileID == id { return }
        } catch let error as EngineError
            where [.sessionNotFound, .sessionExpired, .sessionClosed].contains(error.code)
        {}
        throw EngineError(.fileNotFound)
    }

    /// `DELETE /files/{fileId}`
    @Sendable func delete(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.fileID()
        context.logMetadata.set("file.id", id)
        try await engine.deleteFile(id, owner: context.owner)
        return Response(status: .noContent)
    }
}

extension FileMeta {
    init(_ file: FileRecord) {
        self.init(
            remoteFileId: file.id, fileName: file.fileName, size: file.byteCount,
            sha256: file.digest, mimeType: file.mimeType, etag: file.etag,
            chunkSize: file.chunkSize, createdAt: file.createdAt, damagedAt: file.damagedAt,
            path: file.path, mtime: file.modified?.text)
    }
}

extension FileCursor {
    /// The cursor as text for clients to send back. Its format may change.
    var opaque: String {
        Hex.encode(
            "\(createdAt.millisecondsSinceEpoch).\(id)\(path.map { "." + $0 } ?? "")".utf8)
    }

    init?(opaque text: String) {
        guard let bytes = Hex.decode(text) else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let parts = text.split(
            separator: ".", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let milliseconds = WireInteger.parse(parts[0]),
            let id = FileID(parts[1])
        else { return nil }
        let path = parts.count > 2 ? String(parts[2]) : nil
        guard path.map(FilePath.isStorable) ?? true else { return nil }
        self.init(createdAt: Timestamp(millisecondsSinceEpoch: milliseconds), id: id, path: path)
    }
}
