internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `GET`: the file that the upload has become, as its own address serves it.
    ///
    /// - Throws: `MISSING_CHUNKS` while it is none; `FILE_NOT_FOUND` for a part, unless somebody made a file of
    ///   it through another door.
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
        let owner = context.principal.owner
        if upload.isPartial {
            guard let id = upload.view.fileID else { throw EngineError(.fileNotFound) }
            return try await engine.file(id, owner: owner)
        }
        if upload.awaitsParts {
            guard case .file(let file) = try await engine.compose(upload.view.id, owner: owner)
            else { throw EngineError(.missingChunks) }
            return file
        }
        guard let file = try await file(of: upload, context) else {
            throw EngineError(.missingChunks)
        }
        return file
    }
}
