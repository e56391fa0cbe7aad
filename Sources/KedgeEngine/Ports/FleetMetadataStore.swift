package import KedgeFiles
package import KedgeModel

/// The result of a claim on a chunk.
package enum WriterClaim: Hashable, Sendable {
    /// The caller has the chunk until its lease ends or another writer takes over.
    case granted
    /// Another node has the chunk. That node was notified of the claim.
    case held(by: String)
}

/// The changes of a session since a revision.
package struct SessionChanges: Sendable {
    package var record: SessionRecord
    package var revision: Int64
    /// Chunks committed since; all chunks when ``isWhole`` is true.
    package var chunks: [CommittedChunk]
    /// All current partials and rivals; nil when nothing has changed.
    package var partials: [PartialRecord]?
    /// True when chunks were invalidated since, so that the caller must replace what it knows.
    package var isWhole: Bool

    package init(
        record: SessionRecord, revision: Int64, chunks: [CommittedChunk],
        partials: [PartialRecord]?, isWhole: Bool
    ) {
        self.record = record
        self.revision = revision
        self.chunks = chunks
        self.partials = partials
        self.isWhole = isWhole
    }
}

/// A metadata store that several nodes use at once.
///
/// Each node caches a session in memory and fetches the changes before it acts. Leases keep the
/// writers of one chunk apart. When a holder has lost its lease without knowing, the commit's
/// transaction checks its token. When the database has lost all leases, the rows of partials still
/// keep a replaced writer from discarding what its successor saved; see ``FencingToken``. Time is
/// the database's.
package protocol FleetMetadataStore: MetadataStore {
    /// The database's clock, advanced between its replies by this machine's monotonic clock.
    var databaseClock: any WallClock { get }

    /// Returns the changes of a session; nil when it is gone.
    ///
    /// - Parameter revision: The revision that the caller knows; below zero for none.
    func changes(of id: SessionID, since revision: Int64) async throws -> SessionChanges?

    /// Claims a chunk until the lease ends. A claim by the holder renews the lease. When the claim
    /// is granted, the durable records of the chunk's partials name the new writer.
    ///
    /// - Parameter takesOver: Takes the chunk from a holder whose lease still runs, and invalidates
    ///   that holder's token.
    func claimWriter(
        _ token: FencingToken, of id: SessionID, lease: Duration, takesOver: Bool
    ) async throws -> WriterClaim
    /// Renews the leases of several writers of this node.
    ///
    /// - Returns: The writers whose chunk another node claims or has taken over.
    func renewWriters(
        _ tokens: [(id: SessionID, token: FencingToken)], lease: Duration
    ) async throws -> [FencingToken]
    /// Releases a chunk. A token that holds nothing is no error.
    func releaseWriter(_ token: FencingToken, of id: SessionID) async throws

    /// Change notifications: sessions in which another node did something that this node may want
    /// to act on at once, such as claiming a writer, closing the session or advancing the hash. A
    /// notification may be late, lost or spurious.
    func changeNotifications() -> AsyncStream<SessionID>
}
