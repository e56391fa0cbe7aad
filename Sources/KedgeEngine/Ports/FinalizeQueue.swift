package import KedgeModel

/// An accepted finalize job that is not done.
package struct FinalizeJob: Hashable, Sendable {
    package var record: SessionRecord
    /// The digest that the client expects of the file.
    package var expected: SHA256Digest?

    package init(record: SessionRecord, expected: SHA256Digest?) {
        self.record = record
        self.expected = expected
    }
}

/// Stores the finalizes of sessions: their steps, and the leased jobs of those that outlast their
/// request. Each operation is one transaction, as in ``MetadataStore``.
package protocol FinalizeQueue: Sendable {
    /// Moves an open session to `finalizing` and records the digest and id of its file. Idempotent:
    /// returns the values stored first.
    ///
    /// A session whose reservation ended with a final upload reserves its size again.
    ///
    /// - Parameter quota: The limits of an owner without limits of its own.
    /// - Throws: `quotaExceeded`.
    func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID, within quota: QuotaLimits
    ) async throws -> SessionRecord

    /// Creates the file and moves the session to `completed`, in one transaction. Idempotent:
    /// returns the same file.
    ///
    /// The new bytes become the blob of every file with this digest, and are due for a scrub. The
    /// open partial uploads of a final upload are not needed any more: their reservations end, and
    /// they expire within ``FinalUpload/sourceLifetime``.
    ///
    /// - Parameters:
    ///   - location: The blob's location in the byte store; nil when it is named by its digest.
    ///     With a location, the rest of the staging area becomes garbage, and the blob's previous
    ///     copy is kept as a ``SupersededBlob``.
    ///   - keepUntil: The time until which readers may still read that copy.
    func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord

    /// Completes an empty session as a file with bytes that its owner has already, in one
    /// transaction. Copies the chunk records of a file that
    /// ``FileStore/storedFiles(like:_:limit:)`` could return. The bytes become due for a scrub,
    /// unless they were read within ``StoredFileShape/scrubAge``. Idempotent.
    ///
    /// - Parameters:
    ///   - stored: The blob of the file; has the session's size.
    ///   - fileID: The id of the new file.
    /// - Returns: Nil, and nothing is changed, when there is no such file any more, or the session
    ///   has bytes, declares another digest, or concatenates partial uploads.
    /// - Throws: `notFound`; `wrongState` unless the session is open or completed.
    func completeFinalize(
        of id: SessionID, from stored: StoredFileShape, digest: SHA256Digest, fileID: FileID,
        at now: Timestamp
    ) async throws -> FileRecord?

    /// Moves a finalizing session back to `open`, because its bytes are missing.
    func reopen(_ id: SessionID) async throws

    /// Returns the sessions that are finalizing: those in progress, and those that an error left
    /// behind.
    func finalizingSessions() async throws -> [SessionRecord]

    /// Creates a finalize job for a session, and leases it. A second call by the holder renews the
    /// lease. The session does not expire before the lease. Completing, reopening and canceling the
    /// session end the job.
    ///
    /// - Parameter expected: The digest that the client expects of the file; nil keeps the earlier
    ///   one.
    /// - Returns: False while another node has the lease.
    /// - Throws: `notFound`; `wrongState` unless the session is open or finalizing.
    func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool

    /// Renews the lease; does nothing when the job is gone or another node has it.
    func renewFinalize(of id: SessionID, lease: WorkLease) async throws

    /// Discards a finalize job that has failed or cannot succeed. Does nothing while another node
    /// has the lease.
    func discardFinalize(of id: SessionID, by lease: WorkLease) async throws

    /// Leases finalize jobs whose holder is gone, as ``takeFinalize(of:expecting:lease:)`` does.
    /// Concurrent callers get different jobs.
    func takeAbandonedFinalizes(lease: WorkLease, limit: Int) async throws -> [FinalizeJob]
}

extension FinalizeQueue {
    /// Moves an open session to `finalizing` whose owner has no limits.
    package func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID
    ) async throws -> SessionRecord {
        try await beginFinalize(of: id, digest: digest, fileID: fileID, within: .none)
    }
}

/// Facts about uploads that are made of others.
package enum FinalUpload {
    /// Longest time until a partial upload expires once the final upload is a file.
    package static let sourceLifetime = Duration.seconds(3600)
}
