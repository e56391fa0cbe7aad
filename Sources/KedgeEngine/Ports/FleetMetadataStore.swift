package import KedgeFiles
package import KedgeModel

/// Names one body that is being written, for as long as it may be.
///
/// The lease that goes with it may be lost. So the row of a partial says who saved it, and with which revision of
/// the session; a writer may shorten, replace or remove it only when it saved the row itself, or when the row is
/// not newer than what the writer knew when it got the chunk.
package struct WriterToken: Sendable {
    /// The chunk that is written.
    package var index: Int
    /// Random, so that it is never that of another writer.
    package var text: String
    /// The session's revision that the writer knew once it had the chunk. A partial that another writer saved
    /// later shows that this one was replaced.
    package var knownRevision: Int64

    package init(index: Int, text: String, knownRevision: Int64 = 0) {
        self.index = index
        self.text = text
        self.knownRevision = knownRevision
    }
}

/// A writer is the same whatever it knows.
extension WriterToken: Hashable {
    package static func == (one: WriterToken, other: WriterToken) -> Bool {
        one.index == other.index && one.text == other.text
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(index)
        hasher.combine(text)
    }
}

/// What asking for the bytes of a chunk came to.
package enum WriterClaim: Hashable, Sendable {
    /// The caller has it until its lease ends or somebody takes over.
    case granted
    /// Another node has it. It was told that somebody wants it.
    case held(by: String)
}

/// What happened to a session since a revision of it.
package struct SessionChanges: Sendable {
    package var record: SessionRecord
    package var revision: Int64
    /// Chunks committed since; all chunks with ``isWhole``.
    package var chunks: [CommittedChunk]
    /// All partials and rivals there are now; nil when nothing has changed at all.
    package var partials: [PartialRecord]?
    /// True when chunks were taken back since, so that what was known must be forgotten.
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
/// Each node keeps what it knows of a session in memory and asks for what changed before it acts. Writers of
/// one chunk are kept apart by leases, and when a lease was lost without its holder knowing, by the check of
/// its token in the transaction that commits. When the database has lost all leases, the rows of partials still
/// keep a replaced writer from taking back what its successor saved; see ``WriterToken``. Time is the database's.
package protocol FleetMetadataStore: MetadataStore {
    /// The database's clock, carried on between its answers by this machine's monotonic one.
    var databaseClock: any WallClock { get }

    /// What changed in a session; nil when it is gone.
    ///
    /// - Parameter revision: What the caller knows already; below zero for nothing.
    func changes(of id: SessionID, since revision: Int64) async throws -> SessionChanges?

    /// Asks for a chunk until the lease ends. Its holder may ask again, and renews the lease so.
    /// When the chunk is granted, the durable records of its partials name the new writer.
    ///
    /// - Parameter takesOver: Takes it away from a holder whose lease still runs; that one's token is worth
    ///   nothing any more.
    func claimWriter(
        _ token: WriterToken, of id: SessionID, lease: Duration, takesOver: Bool
    ) async throws -> WriterClaim
    /// Renews the lease of several writers of this node.
    ///
    /// - Returns: Those that somebody else wants, or has already.
    func renewWriters(
        _ tokens: [(id: SessionID, token: WriterToken)], lease: Duration
    ) async throws -> [WriterToken]
    /// Gives a chunk back. A token that holds nothing is no error.
    func releaseWriter(_ token: WriterToken, of id: SessionID) async throws

    /// Sessions in which something happened on another node that this one may want to act on at once: a
    /// writer is wanted, a session was closed, the hash went on. Only a hint: it may come late or never, and
    /// for nothing.
    func hints() -> AsyncStream<SessionID>
}
