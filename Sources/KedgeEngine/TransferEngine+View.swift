package import KedgeModel

extension TransferEngine {
    /// The upload as it is now. Waits for no writer and takes no lock, so that it is answered while a
    /// request hangs; what that one brought since its last checkpoint is not in the offset yet.
    ///
    /// - Parameter stopsAppend: Stops an append that is under way, as a newer append would, and waits until
    ///   what it brought is durable: the offset then holds until somebody else sends.
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED` for a canceled or failed one.
    package func uploadView(
        of id: SessionID, owner: OwnerID, stopsAppend: Bool = false
    ) async throws -> UploadView {
        try await translating {
            try await registry.withSession(id, owner: owner) { live in
                if stopsAppend { try await stopAppend(to: live) }
                return try await live.uploadView()
            }
        }
    }

    /// Takes the place of whoever appends, and leaves it. On another node that is whoever writes the chunk
    /// in which the contiguous bytes end.
    private func stopAppend(to live: LiveSession) async throws {
        do {
            try await writing(.append, of: live) { [parts] writer in
                guard parts.fleet != nil else { return }
                var stopped: Int?
                // Claiming waits, and the chunk may be committed meanwhile and the next one begun.
                while let index = await live.ledger.appendIndex, index != stopped {
                    let placeholder = try await live.claimChunk(index, stopping: writer)
                    await live.release(.chunk(index), placeholder)
                    stopped = index
                }
            }
        } catch let error as EngineError where error.code == .sessionClosed {
            // Nobody writes to it; the view tells what has become of it.
            return
        }
    }
}

extension LiveSession {
    fileprivate func uploadView() throws -> UploadView {
        try requireCurrent()
        switch ledger.record.state {
        case .open, .finalizing, .completed: return UploadView(ledger)
        default: throw EngineError.closed(ledger.record.state)
        }
    }
}
