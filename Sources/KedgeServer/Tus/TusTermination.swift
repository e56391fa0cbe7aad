internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `DELETE` (extension termination): cancels an upload, or deletes its file.
    @Sendable func terminate(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        let upload = try await upload(id, isDamagedTaken: true, context)
        let owner = context.principal.owner
        if upload.view.state == .completed, let file = upload.view.fileID {
            try await engine.deleteFile(file, owner: owner)
            return Response(status: .noContent)
        }
        try await engine.cancelSession(upload.view.id, owner: owner)
        return Response(status: .noContent)
    }
}
