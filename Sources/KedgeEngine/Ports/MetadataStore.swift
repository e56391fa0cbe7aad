package import KedgeModel

/// Errors common to all metadata stores.
package enum MetadataError: Error, Hashable, Sendable {
    /// There is no such session or file for this owner.
    case notFound
    /// The session's state does not allow the operation.
    case wrongState(SessionState)
    /// Another writer has taken the chunk over; nothing was written.
    case writerReplaced
    /// The rows belong to bytes in another store.
    case foreignBytes(String)
    /// The database cannot be reached, or is busy for longer than its timeout. A retry may help.
    case unavailable(String)
    /// The owner would exceed a limit; nothing was written.
    case quotaExceeded(QuotaRefusal)
    /// The disk under the database is full.
    case full(String)
    /// Any other failure; nothing was changed.
    case failed(String)
}

/// Numbers of rows, for metrics.
package struct RowCounts: Hashable, Sendable {
    package let openSessions: Int
    package let finalizingSessions: Int
    /// Blobs and staging areas that wait for their removal.
    package let garbage: Int

    package init(openSessions: Int, finalizingSessions: Int, garbage: Int) {
        self.openSessions = openSessions
        self.finalizingSessions = finalizingSessions
        self.garbage = garbage
    }
}

/// Stores all rows of the service: those of the ports that it composes, and the identity of the
/// bytes that they belong to. Owners that need only some of these ports ask for those.
///
/// Each operation is one transaction. It is durable on return and changes nothing when it throws.
/// Only ``MetadataError`` is thrown.
///
/// Cancelling the calling task never abandons an operation: a row that may have been written is
/// always reported.
package protocol MetadataStore:
    SessionStore, ChunkStore, FinalizeQueue, FileStore, GarbageQueue, StagingRecords, ScrubRecords
{
    /// Binds the rows to a byte store. The first call decides: nodes that share rows must share
    /// bytes, too.
    ///
    /// - Throws: ``MetadataError/foreignBytes(_:)`` when the rows belong to another byte store.
    func bind(toBytesAt identity: String) async throws

    /// Counts rows, for metrics.
    func rowCounts() async throws -> RowCounts

    /// Checks that the store replies and can write.
    func checkHealth() async throws

    /// Waits for all work to end and closes the store. No call may follow.
    func close() async throws
}
