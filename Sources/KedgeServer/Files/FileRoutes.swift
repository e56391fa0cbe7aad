internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Operations on whole files: upload in one request, list, metadata, chunk digests, delete.
struct FileRoutes: Sendable {
    let engine: TransferEngine

    /// `POST /files`: stores the body as a file. Also starts a resumable upload for clients that
    /// support one.
    @Sendable func ingest(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let call = ResumableUploadCall(request.headers)
        if call.beginsUpload {
            return try await ResumableUploadRoutes(engine: engine).create(request, context, call)
        }
        let body = try RequestByteBody(request, context: context)
        let (digest, checksum) = try ResumableUploadDigests.whole(request.headers)
        let new = NewSession(
            fileName: try ContentDisposition.fileName(of: request),
            fileSize: body.announcedByteCount,
            mimeType: request.headers[.contentType], client: context.client)
        let file = try await engine.ingest(
            new, owner: context.principal.owner, expecting: digest, checksum: checksum,
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
        let limitText = request.uri.queryParameters.get("limit") ?? "100"
        guard let limit = WireInteger.parse(limitText), (1...1000).contains(limit) else {
            throw EngineError(.badRequest, "limit must be a number from 1 to 1000.")
        }
        let cursor = try request.uri.queryParameters.get("after").map { text in
            guard let cursor = FileCursor(opaque: String(text)) else {
                throw EngineError(.badRequest, "after is not a cursor of this list.")
            }
            return cursor
        }
        let files = try await engine.files(
            of: context.principal.owner, after: cursor, limit: Int(limit) + 1,
            onlyDamaged: try Self.asksForDamaged(request))
        let page = files.prefix(Int(limit))
        let next = files.count > page.count ? page.last.map { FileCursor($0).opaque } : nil
        return .json(FileList(files: page.map { FileMeta($0) }, next: next))
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
        let file = try await engine.file(context.fileID(), owner: context.principal.owner)
        return .json(FileMeta(file))
    }

    /// `GET /files/{fileId}/chunks`
    @Sendable func chunks(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let file = try await engine.file(context.fileID(), owner: context.principal.owner)
        let digests = try await engine.chunkDigests(of: file)
        return .json(FileChunks(chunkSize: file.chunkSize, sha256: digests))
    }

    /// `DELETE /files/{fileId}`
    @Sendable func delete(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.fileID()
        context.logMetadata.set("file.id", id)
        try await engine.deleteFile(id, owner: context.principal.owner)
        return Response(status: .noContent)
    }
}

extension FileMeta {
    init(_ file: FileRecord) {
        self.init(
            remoteFileId: file.id, fileName: file.fileName, size: file.byteCount,
            sha256: file.digest, mimeType: file.mimeType, etag: file.etag,
            chunkSize: file.chunkSize, createdAt: file.createdAt, damagedAt: file.damagedAt)
    }
}

extension FileCursor {
    init(_ file: FileRecord) { self.init(createdAt: file.createdAt, id: file.id) }

    /// The cursor as text for clients to send back. Its format may change.
    var opaque: String {
        Hex.encode("\(createdAt.millisecondsSinceEpoch).\(id)".utf8)
    }

    init?(opaque text: String) {
        guard let bytes = Hex.decode(text) else { return nil }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: ".")
        guard parts.count == 2, let milliseconds = WireInteger.parse(parts[0]),
            let id = FileID(parts[1])
        else { return nil }
        self.init(createdAt: Timestamp(millisecondsSinceEpoch: milliseconds), id: id)
    }
}
