internal import KedgeModel

/// Lends the bytes of complete partial uploads, from their files or from their staging areas.
struct SourceReader: Sendable {
    let registry: SessionRegistry
    let sessionWriter: SessionWriter
    let fileService: FileService
    let sessionBytes: SessionBytes

    /// Lends the bytes of a partial upload to the closure.
    ///
    /// - Throws: The errors of reading it, and `FILE_GONE`.
    func withBytes(
        of upload: SourceUpload, owner: OwnerID,
        _ body: @escaping @Sendable (SourceBytes) async throws -> Void
    ) async throws {
        let record = try await registry.withSession(upload.id, owner: owner) {
            await $0.ledger.record
        }
        guard record.state == .completed, let fileID = record.fileID else {
            return try await withStagedBytes(of: upload, owner: owner, body)
        }
        let file = try await fileService.file(fileID, owner: owner)
        let digests = try await fileService.chunkDigests(of: file)
        let opened = try await fileService.openFile(file)
        let bytes = SourceBytes(
            byteCount: upload.byteCount, chunkSize: file.chunkSize, digests: digests,
            source: opened.reader.read, dropCached: opened.reader.dropCached,
            copySource: opened.reader.copySource)
        let result = await Result { try await body(bytes) }
        await opened.reader.close()
        try result.get()
    }

    /// Lends the bytes of a partial upload that is not a file. Its staging area stays open
    /// meanwhile: a finalize or cancel of the partial upload stops the closure first.
    ///
    /// - Throws: ``DamagedSourceUpload`` for the closure's ``DamagedChunk``.
    private func withStagedBytes(
        of upload: SourceUpload, owner: OwnerID,
        _ body: @escaping @Sendable (SourceBytes) async throws -> Void
    ) async throws {
        try await registry.withSession(upload.id, owner: owner) { session in
            let revision = await session.ledger.revision
            do {
                try await assemble(session)
                try await sessionWriter.reading(session) {
                    let area = try await session.stagingArea()
                    let ledger = await session.ledger
                    try await body(
                        SourceBytes(
                            byteCount: upload.byteCount, chunkSize: ledger.record.chunkSize,
                            digests: ledger.chunks.map(\.digest), source: area.read,
                            dropCached: area.dropCached, copySource: area.copySource))
                }
            } catch let damage as DamagedChunk {
                throw DamagedSourceUpload(damage: damage, session: session, revision: revision)
            }
        }
    }

    private func assemble(_ session: LiveSession) async throws {
        do {
            try await sessionBytes.assemble(session)
        } catch ByteStoreError.notFound {
            // A store that assembles cannot replace one chunk: any index stands for all.
            throw DamagedChunk(index: 0)
        }
    }
}
