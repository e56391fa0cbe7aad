internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

// Concatenation by clients that have a link.
extension TusRoutes {
    /// Refuses `Upload-Concat` for a link that is for one whole file.
    ///
    /// - Throws: `FORBIDDEN`.
    static func requireConcatenation(by principal: Principal) throws {
        guard case .put(let limits)? = principal.link?.grant else { return }
        guard limits.uses > 1 else {
            throw EngineError(
                .forbidden,
                "The link is for one upload, and partial uploads count, too: set parallelUploads "
                    + "to 1, or make a link with more uses.")
        }
        // A partial upload is a part of the file, and none of the file's own limits fits it.
        guard limits.byteCount == nil, limits.minByteCount == nil, limits.digest == nil else {
            throw EngineError(
                .forbidden,
                "The link is for a whole file of a certain size or digest: set parallelUploads "
                    + "to 1.")
        }
    }

    /// Refuses a link that names partial uploads without their own links. Otherwise, its client
    /// could join other uploads of the owner.
    ///
    /// - Throws: `BAD_REQUEST`, as for an upload that does not exist.
    func requireLinks(
        of sources: [TusConcatenation.Source], _ context: KedgeRequestContext
    ) async throws {
        guard context.principal.link != nil else { return }
        for source in sources {
            guard try await isPermitted(source, context) else {
                throw EngineError(
                    .badRequest, "Upload-Concat has \(source.id), which is not a partial upload.")
            }
        }
    }

    private func isPermitted(
        _ source: TusConcatenation.Source, _ context: KedgeRequestContext
    ) async throws -> Bool {
        guard let authority = links.authority, let text = source.link else { return false }
        do {
            let link = try await LinkLookup(authority: authority).link(text, context)
            guard case .session(let linked) = link.grant else { return false }
            return linked.session == source.id && link.owner == context.owner
        } catch let error as EngineError
            where [.linkInvalid, .linkExpired, .forbidden].contains(error.code)
        {
            return false
        }
    }
}
