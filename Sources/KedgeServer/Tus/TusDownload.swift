internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `GET`: serves the file of the upload in the same way as the file's own address.
    ///
    /// - Throws: `MISSING_CHUNKS` while there is no file; `FILE_NOT_FOUND` for a partial upload,
    ///   unless it was finalized through another protocol.
    @Sendable func download(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let upload = try await upload(context)
        return try await DownloadRoutes(engine: engine).answer(
            request, try await downloadable(upload, context), context)
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
