internal import Hummingbird
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

// Final uploads (extensions concatenation and concatenation-unfinished): sessions that are made of others. The
// engine makes them in the background as soon as all parts are whole.
extension TusRoutes {
    /// How long the request that names the parts, or brings the last byte of one, waits for the file. A client
    /// that goes before loses nothing.
    private static let finalPatience = Duration.seconds(30)
    private static let lastPartPatience = Duration.seconds(5)
    /// How often the same final upload may be asked for again after it was deleted.
    private static let maxGenerations = 1000

    /// Makes the upload of the parts; the same request gives the same upload again, as long as it is there.
    ///
    /// - Throws: `BAD_REQUEST` for what is no part of the owner's.
    func createFinal(
        _ new: NewSession, of ids: [SessionID], _ request: Request,
        _ context: KedgeRequestContext
    ) async throws -> Response {
        try await requireParts(ids, context)
        var new = new
        new.parts = ids
        let upload = try await final(new, context)
        context.notes.set("session.id", upload.view.id)
        _ = try await engine.compose(
            upload.view.id, owner: context.principal.owner, patience: Self.finalPatience)
        return created(try await self.upload(upload.view.id, context), asked: request)
    }

    /// The session of the same request before, unless it is over; otherwise a new one.
    private func final(
        _ new: NewSession, _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        let owner = context.principal.owner
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
        throw EngineError(.unavailable, "The same upload was made and deleted too often.")
    }

    /// Names a request by what it asks for: clients repeat one whose answer they missed.
    private static func key(of new: NewSession, generation: Int) -> IdempotencyKey {
        let texts = [TusUpload.MetadataKey.concat, TusUpload.MetadataKey.metadata]
            .map { new.metadata[$0] ?? "" }
        let digest = SHA256Hasher.digest(of: Array(texts.joined(separator: "\n").utf8)).hex
        return IdempotencyKey(key: "kedge.tus.final.\(digest).\(generation)", fingerprint: digest)
    }

    /// Makes what has waited for this part and misses no other.
    func finishWaiting(for part: SessionID, _ context: KedgeRequestContext) async {
        await engine.completedPart(
            part, owner: context.principal.owner, patience: Self.lastPartPatience)
    }

    /// - Throws: `BAD_REQUEST` when one is not there, or is no partial upload.
    private func requireParts(_ ids: [SessionID], _ context: KedgeRequestContext) async throws {
        for id in ids {
            do {
                if try await upload(id, context).isPartial { continue }
            } catch let error as EngineError
                where [.sessionNotFound, .sessionExpired, .fileGone].contains(error.code)
            {}
            throw EngineError(
                .badRequest, "Upload-Concat names \(id), which is no partial upload.")
        }
    }
}
