internal import Hummingbird
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

// Final uploads (extensions concatenation and concatenation-unfinished): sessions that concatenate
// partial uploads. The engine does this in the background, as soon as all partial uploads are
// complete.
extension TusRoutes {
    /// Timeouts for a request that waits for the file: one that creates the final upload, or one
    /// that completes its last partial upload. Concatenation continues without the client.
    private static let concatenationTimeout = Duration.seconds(30)
    private static let lastPartialUploadTimeout = Duration.seconds(5)
    /// Maximum number of times that the same final upload can be created again after a deletion.
    private static let maxGenerations = 1000

    /// Creates a final upload. Idempotent: the same request returns the same upload while that
    /// exists.
    ///
    /// - Throws: `BAD_REQUEST` for an id that is not a partial upload of the owner.
    func createFinal(
        _ new: NewSession, of ids: [SessionID], _ request: Request,
        _ context: KedgeRequestContext
    ) async throws -> Response {
        try await requireSources(ids, context)
        let upload = try await final(new, context)
        context.logMetadata.set("session.id", upload.view.id)
        _ = try await engine.concatenate(
            upload.view.id, owner: context.owner, timeout: Self.concatenationTimeout)
        return try await created(
            try await self.upload(upload.view.id, context), request, context)
    }

    /// The session of an earlier equal request if it still exists, otherwise a new one.
    private func final(
        _ new: NewSession, _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        let owner = context.owner
        for generation in 0..<Self.maxGenerations {
            let key = Self.key(of: new, generation: generation)
            do {
                let status = try await engine.createSession(new, owner: owner, idempotencyKey: key)
                return try await upload(status.sessionId, context)
            } catch let error as EngineError
                where [.fileGone, .sessionNotFound, .sessionExpired].contains(error.code)
            {
                continue
            }
        }
        throw EngineError(.unavailable, "The same upload was created and deleted too often.")
    }

    /// Derives an idempotency key from the request, because clients repeat a request when they miss
    /// its response. The addresses of the partial uploads do not count: links in them may differ.
    private static func key(of new: NewSession, generation: Int) -> IdempotencyKey {
        let ids = (new.sourceIDs ?? []).map(\.text).joined(separator: " ")
        let texts = [ids, new.metadata[TusUpload.MetadataKey.metadata] ?? ""]
        let digest = SHA256Hasher.digest(of: Array(texts.joined(separator: "\n").utf8)).hex
        return IdempotencyKey(key: "kedge.tus.final.\(digest).\(generation)", fingerprint: digest)
    }

    /// Starts the concatenations that lacked only this partial upload, and waits a little for their
    /// files.
    func finishWaiting(for source: SessionID, _ context: KedgeRequestContext) async {
        await engine.completedPartialUpload(
            source, owner: context.owner, timeout: Self.lastPartialUploadTimeout)
    }

    /// - Throws: `BAD_REQUEST` when an upload does not exist or is not a partial one.
    private func requireSources(_ ids: [SessionID], _ context: KedgeRequestContext) async throws {
        for id in ids {
            do {
                if try await upload(id, context).isPartial { continue }
            } catch let error as EngineError
                where [.sessionNotFound, .sessionExpired, .fileGone].contains(error.code)
            {}
            throw EngineError(
                .badRequest, "Upload-Concat has \(id), which is not a partial upload.")
        }
    }
}
