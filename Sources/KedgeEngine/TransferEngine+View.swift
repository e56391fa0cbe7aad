package import KedgeModel

extension TransferEngine {
    /// Returns the upload's current state. Takes no lock and waits for no writer, so it is answered
    /// while a request hangs. The offset does not include bytes since the last checkpoint of such a
    /// request.
    ///
    /// - Parameter stopsAppend: Whether to stop an append under way, as a newer append would, and
    ///   wait until its bytes are durable. The offset then holds until a client sends more bytes.
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED` for a canceled or failed
    ///   session.
    package func uploadView(
        of id: SessionID, owner: OwnerID, stopsAppend: Bool = false
    ) async throws -> UploadView {
        try await translating {
            try await registry.withSession(id, owner: owner) { session in
                if stopsAppend { try await stopAppend(to: session) }
                return try await session.uploadView()
            }
        }
    }

    /// Takes the slot of the append under way and releases it. On another node, the append is the
    /// writer of the chunk in which the contiguous bytes end.
    private func stopAppend(to session: LiveSession) async throws {
        do {
            try await sessionWriter.writing(.append, of: session) { [context] writer in
                guard context.fleet != nil else { return }
                var stopped: Int?
                // During the claim, the chunk may be committed and the next one begun.
                while let index = await session.ledger.appendIndex, index != stopped {
                    let placeholder = try await session.claimChunk(index, stopping: writer)
                    await session.release(.chunk(index), placeholder)
                    stopped = index
                }
            }
        } catch let error as EngineError where error.code == .sessionClosed {
            // A session that is not open has no writer; the view shows its state.
            return
        }
    }
}
