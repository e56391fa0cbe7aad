package import KedgeModel

extension TransferEngine {
    /// Returns the progress of a final upload. Starts the concatenation when all partial uploads
    /// are complete.
    ///
    /// A call keeps the session and its open partial uploads from expiring.
    ///
    /// - Parameter timeout: Limit of the wait for a concatenation that can run now. It goes on
    ///   afterwards.
    /// - Throws: `BAD_REQUEST` when the session is not a final upload, `SESSION_EXPIRED` when it or
    ///   a partial upload is gone, `FILE_GONE` when its file was deleted, `FILE_TOO_LARGE`,
    ///   `FORBIDDEN` when the file is too small for the session, and the errors of
    ///   ``uploadView(of:owner:stopsAppend:)``.
    package func concatenate(
        _ id: SessionID, owner: OwnerID, timeout: Duration = .zero
    ) async throws -> Concatenation {
        try await concatenator.concatenate(id, owner: owner, timeout: timeout)
    }

    /// Starts the concatenations for which a completed session was the last missing partial upload.
    ///
    /// - Parameter timeout: Limit of the wait for all of them together.
    package func completedPartialUpload(
        _ source: SessionID, owner: OwnerID, timeout: Duration = .zero
    ) async {
        await concatenator.completedPartialUpload(source, owner: owner, timeout: timeout)
    }
}
