internal import KedgeFiles
internal import KedgeModel

/// Looks up final uploads and their partial uploads, and keeps them alive.
struct UploadLookup: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let fileService: FileService

    /// Returns the session's current state, without stopping its writers.
    func view(of id: SessionID, owner: OwnerID) async throws -> UploadView {
        try await translating {
            try await registry.withSession(id, owner: owner) { try await $0.uploadView() }
        }
    }

    /// Returns the file that an upload has become, unless the file is deleted or damaged.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord {
        try await fileService.file(id, owner: owner)
    }

    /// Returns the state of partial uploads as a whole.
    ///
    /// - Returns: The total size, nil while unknown, and whether all partial uploads are complete.
    /// - Throws: `SESSION_EXPIRED` when one is gone, `FILE_TOO_LARGE`.
    func sourcesState(
        of ids: [SessionID], owner: OwnerID
    ) async throws -> (byteCount: Int64?, isReady: Bool) {
        var sum: Int64? = 0
        var isReady = true
        for id in ids {
            do {
                let view = try await view(of: id, owner: owner)
                if view.state == .completed, let file = view.fileID {
                    _ = try await fileService.file(file, owner: owner)
                }
                isReady = isReady && view.fileSize == view.offset
                sum = sum.flatMap { sum in
                    view.fileSize.map { sum.addingReportingOverflow($0).partialValue }
                }
                if let sum, sum < 0 || sum > context.configuration.maxFileSize {
                    throw context.tooLarge()
                }
            } catch let error as EngineError where error.meansGone {
                throw EngineError(.sessionExpired, "A partial upload of this upload is missing.")
            }
        }
        return (sum, isReady)
    }

    /// Checks the size of a final upload against the limits of its session.
    ///
    /// - Throws: `FILE_TOO_LARGE`, `FORBIDDEN`.
    func requirePermittedSize(
        _ byteCount: Int64, of id: SessionID, owner: OwnerID
    ) async throws {
        try await registry.withSession(id, owner: owner) { session in
            if let refusal = await session.ledger.record.refusal(ofSize: byteCount) {
                throw refusal
            }
        }
    }

    /// Keeps the sessions from expiring.
    func keepAlive(_ ids: [SessionID], owner: OwnerID) async throws {
        for id in ids {
            try await registry.withSession(id, owner: owner) { try await $0.stayAlive() }
        }
    }

    /// Gives the partial uploads of a completed upload the expiry that the store has given them. A
    /// further final upload that waits for them keeps them from expiring again.
    func endSources(_ ids: [SessionID]) async {
        let end = context.clock.now().advanced(by: FinalUpload.sourceLifetime)
        for id in ids { await registry.session(inMemory: id)?.expire(by: end) }
    }

    /// Loads the changes that other nodes made to the session.
    func refresh(_ id: SessionID, owner: OwnerID) async throws {
        try await registry.withSession(id, owner: owner) { try await $0.refresh() }
    }
}

extension EngineError {
    /// True when the session or file is gone, or never existed.
    var meansGone: Bool {
        [.sessionNotFound, .sessionExpired, .sessionClosed, .fileGone].contains(code)
    }
}
