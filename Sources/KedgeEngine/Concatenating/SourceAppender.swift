internal import KedgeModel

/// Appends the bytes of a partial upload to its final upload. The bytes are read once more for the
/// hashes of the file and its chunks. Then the store copies them itself if it can; otherwise they
/// are written.
struct SourceAppender: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let sessionWriter: SessionWriter
    let reader: SourceReader

    /// Appends the bytes of the partial upload that are missing.
    ///
    /// - Throws: ``DamagedChunk``, and the errors of reading and appending.
    func append(_ upload: SourceUpload, to id: SessionID, owner: OwnerID) async throws {
        guard !context.isEnding else { throw EngineError(.unavailable, "The service is stopping.") }
        try await reader.withBytes(of: upload, owner: owner) { bytes in
            try await self.append(upload, bytes, to: id, owner: owner)
        }
    }

    private func append(
        _ upload: SourceUpload, _ bytes: SourceBytes, to id: SessionID, owner: OwnerID
    ) async throws {
        try await registry.withSession(id, owner: owner) { session in
            let offset = await session.ledger.contiguousOffset
            guard offset < upload.end else { return }
            guard offset >= upload.start else {
                throw EngineError(
                    .unavailable, cause: "bytes of earlier partial uploads are missing")
            }
            if let source = try await bytes.copySource() {
                try await session.stagingArea().noteCopies(of: source, at: upload.start)
            }
            let body = SourceBody(bytes: bytes, start: offset - upload.start, context: context)
            _ = try await sessionWriter.append(
                AppendPut(offset: offset), to: session, body: body)
        }
    }
}
