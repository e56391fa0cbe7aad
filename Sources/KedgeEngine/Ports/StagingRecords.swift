internal import KedgeModel

/// The byte store's own state of a staging area, so that every node finds the area and the sweep
/// can remove it. In an object store: the multipart upload that collects the chunks.
///
/// Only the byte store reads the text. It is part of the session, and becomes part of the garbage
/// when the session ends.
package protocol StagingRecords: Sendable {
    /// Returns the recorded state; nil when none is recorded, or no session has the key.
    func stagingState(of key: StagingKey) async throws -> String?
    /// Records a state if the earlier one is as expected. One of several concurrent callers
    /// succeeds.
    ///
    /// - Returns: The state that is recorded now.
    /// - Throws: `notFound` when no session has the key any more.
    func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String?
}
