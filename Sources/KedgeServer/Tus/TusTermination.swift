internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

extension TusRoutes {
    /// `DELETE` (extension termination): cancels an upload, or deletes its file.
    @Sendable func terminate(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        let upload = try await upload(id, isDamagedTaken: true, context)
        if try await !deleteFile(of: upload, context) {
            do {
                try await engine.cancelSession(upload.view.id, owner: context.owner)
            } catch let error as EngineError where error.code == .sessionClosed {
                // The last bytes may have made it a file meanwhile.
                let current = try await self.upload(id, isDamagedTaken: true, context)
                guard try await deleteFile(of: current, context) else { throw error }
            }
        }
        return Response(status: .noContent)
    }

    /// - Returns: False when the upload is not a file.
    private func deleteFile(
        of upload: TusUpload, _ context: KedgeRequestContext
    ) async throws -> Bool {
        guard upload.view.state == .completed, let file = upload.view.fileID else { return false }
        // The route is for uploads; a complete one is a file.
        try context.requireAccess(.anyOf(.filesDelete))
        try await engine.deleteFile(file, owner: context.owner)
        return true
    }
}
