internal import KedgeModel

/// What a byte store remembers of a staging area beside the rows of its chunks, so that every node finds it,
/// and the sweep can undo it: for an object store the multipart upload that collects the chunks.
///
/// The text is the store's own. It goes with the session, into the garbage when that ends.
package protocol StagingRecords: Sendable {
    /// What is recorded; nil when nothing is, or nobody has bytes under the key.
    func stagingState(of key: StagingKey) async throws -> String?
    /// Records a state if the one before is as expected; of several nodes that try, one succeeds.
    ///
    /// - Returns: What is recorded now.
    /// - Throws: `notFound` when no session has the key any more.
    func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String?
}
