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
        try await uploads.view(of: id, owner: owner, stopsAppend: stopsAppend)
    }
}
