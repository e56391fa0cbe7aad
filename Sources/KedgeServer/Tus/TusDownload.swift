internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

extension TusRoutes {
    /// `GET`: serves the file of the upload in the same way as the file's own address.
    ///
    /// - Throws: `MISSING_CHUNKS` while there is no file; `FILE_NOT_FOUND` for a partial upload,
    ///   unless it was finalized through another protocol.
    @Sendable func download(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await requireLinkedFile(context)
        let upload = try await upload(context)
        return try await DownloadRoutes(engine: engine).answer(
            request, try await downloadable(upload, context), context)
    }

    /// Refuses every upload but the one that has become the file of a link, as if there were none.
    private func requireLinkedFile(_ context: KedgeRequestContext) async throws {
        guard case .get(let linked)? = context.principal.link?.grant else { return }
        do {
            let view = try await engine.uploadView(of: context.sessionID(), owner: context.owner)
            if view.fileID == linked.file { return }
        } catch let error as EngineError
            where [.sessionNotFound, .sessionExpired, .sessionClosed].contains(error.code)
        {}
        throw EngineError(.sessionNotFound)
    }

    private func downloadable(
        _ upload: TusUpload, _ context: KedgeRequestContext
    ) async throws -> FileRecord {
        let owner = context.owner
        if upload.isPartial {
            guard let id = upload.view.fileID else { throw EngineError(.fileNotFound) }
            return try await engine.file(id, owner: owner)
        }
        if upload.awaitsSources {
            guard case .file(let file) = try await engine.concatenate(upload.view.id, owner: owner)
            else { throw EngineError(.missingChunks) }
            return file
        }
        guard let file = try await file(of: upload, context) else {
            throw EngineError(.missingChunks)
        }
        return file
    }
}
