package import KedgeModel

/// Limits and times of the engine.
package struct EngineConfiguration: Sendable {
    /// Smallest and largest chunk size a session may ask for, in bytes. Larger chunks mean fewer
    /// rows and requests; smaller ones mean less to verify again after damage.
    package var chunkSizes: ClosedRange<Int64> = (256 << 10)...(64 << 20)
    /// Chunk size of sessions that do not ask for one, in bytes.
    package var defaultChunkSize: Int64 = ChunkLayout.defaultChunkSize
    /// Largest file taken, in bytes.
    package var maxFileSize: Int64 = 1 << 40
    /// Chunks that one client should have in flight; announced, not enforced.
    package var maxConcurrentChunks = 8
    /// Bodies being written at once, over all sessions; more are answered BUSY before their body is
    /// read. Bounds memory and descriptors: each takes two buffers, small ones when there are many.
    package var maxConcurrentWrites = 64
    /// A body that comes slower than this, in bytes a second, makes room when others wait for a place.
    package var slowBodyBytesPerSecond: Int64 = 64 << 10
    /// Waiting for bytes over which it is judged whether a body is slow.
    package var slowBodyGrace: Duration = .seconds(2)
    /// How long a session lives after its last activity.
    package var sessionLifetime: Duration = .seconds(7 * 24 * 3600)
    /// How long a session lives that never had a byte.
    package var emptySessionLifetime: Duration = .seconds(3600)
    /// Sessions that are open at once, over all owners and nodes. One without a byte makes room for another.
    package var maxOpenSessions = 10_000
    /// How long an expired session's bytes stay for a new session to adopt.
    package var expiryGrace: Duration = .seconds(24 * 3600)
    /// How far the whole-file hash may lag behind the committed prefix before acknowledgements wait
    /// for it, in bytes. Bounds the time that finalize takes.
    package var maxHashLag: Int64 = 32 << 20
    /// How long finalize waits for the whole-file hash before it answers "pending".
    package var finalizePatience: Duration = .seconds(20)
    /// How long a door that answers only with the finished file waits for it. Then it says UNAVAILABLE,
    /// while the work goes on or is done when asked again.
    package var finishPatience: Duration = .seconds(180)
    /// How long the bytes of a chunk that is still coming stay unrecorded. A killed process costs the
    /// client about what it sent in this time; less means more syncs on slow links.
    package var checkpointInterval: Duration = .seconds(2)
    /// New bytes of a chunk that are recorded without waiting for the interval. Chunks of the default
    /// size stay below and pay no further sync; larger ones pay as often as chunks of this size.
    package var checkpointByteCount: Int64 = 16 << 20
    /// New bytes that are worth a sync and a row when the interval is over.
    package var minCheckpointByteCount: Int64 = 64 << 10
    /// Size of the buffers that gather a body, in bytes. They get smaller when many bodies come at once.
    package var bufferCapacity = 512 << 10
    /// Memory for all buffers, in bytes. When it is used up the smallest ones are lent on top of it.
    package var bufferByteCount = 6 << 20
    /// How long the first bytes of a chunk wait for the chunk before it, so that both are hashed for their
    /// file in turn.
    package var hashTurnPatience: Duration = .milliseconds(100)
    /// How long a writer may go on after a newer request wanted the same bytes. A hung one costs the
    /// newer this much; one whose connection has just ended gets its last bytes saved, and up to four
    /// times as long while they still come.
    package var takeoverGrace: Duration = .milliseconds(200)
    /// Idle sessions leave memory after this time; they are loaded again when asked for.
    package var idleSessionLifetime: Duration = .seconds(60)
    /// Open staging areas above which idle sessions leave memory at once; each holds a descriptor.
    package var maxIdleStagingAreas = 256
    /// Size of the smallest chunk that the byte store can keep, in bytes; who asks for less gets the default.
    package var minStoredChunkSize: Int64 = 1
    /// Most chunks that the byte store can make one file of.
    package var maxChunkCount = ChunkLayout.maxChunkCount
    /// For how long a node of a fleet has a chunk without renewing; a dead one blocks it as long.
    package var writerLease: Duration = .seconds(10)
    /// How long the writer of a chunk on another node has to save what it brought.
    package var fleetTakeoverGrace: Duration = .milliseconds(600)
    /// How often a node asks whether the other one is done.
    package var fleetTakeoverStep: Duration = .milliseconds(50)
    /// For how long a node has a finalize without renewing; a dead one holds it up as long.
    package var finalizeLease: Duration = .seconds(15)
    /// Bytes of a long hash after which it is recorded how far it has come.
    package var sharedHashStep: Int64 = 128 << 20
    /// Largest body that is taken only as a whole, because a checksum of it was sent, in bytes: until its end
    /// all of it waits.
    package var maxCheckedByteCount: Int64 = 1 << 30
    /// Most other uploads that one can be made of.
    package var maxPartCount = 1000
    /// Most uploads that one can be a part of. Each has a copy of its bytes, so that without a bound a few requests
    /// that name the same parts in other orders would fill the disk.
    package var maxCompositionsPerPart = 8
    /// Uploads made of others for which bytes are copied at once.
    package var maxConcurrentFills = 2
    /// Largest total of metadata keys and values that a client gives one session, in bytes.
    package var maxMetadataByteCount = 8 << 10

    /// How soon after its upload a file is to be read back: a target, for transfers go first.
    package var scrubNewFilesWithin: Duration = .seconds(3600)
    /// How often every file is read back; zero for never again after the first time.
    package var scrubPeriod: Duration = .seconds(30 * 24 * 3600)
    /// Most bytes a second that are read back while no transfers are under way; an eighth of them meanwhile.
    package var scrubBytesPerSecond: Int64 = 64 << 20
    /// For how long a node has a blob to read without renewing: longer than reading one chunk takes beside
    /// transfers.
    package var scrubLease: Duration = .seconds(900)
    /// How often it renews, and looks whether something more urgent is due.
    package var scrubRenewal: Duration = .seconds(20)
    /// When a damaged blob is looked at again: a disk that failed for a while may give its bytes again.
    package var damagedScrubPeriod: Duration = .seconds(3600)
    /// When a blob is read again that the store could not give.
    package var undecidedScrubPause: Duration = .seconds(600)
    /// For how long an object stays that a later upload of the same bytes has superseded: longer than
    /// addresses for readers are good. Nodes keep what their own readers still read.
    package var supersededLifetime: Duration = .seconds(3600)

    package init() {}

    /// True when a file of this size has no more chunks than the store can keep.
    func fits(_ fileSize: Int64, inChunksOf chunkSize: Int64) -> Bool {
        (fileSize - 1) / chunkSize < Int64(maxChunkCount)
    }

    /// The limits as a client sees them.
    package var limits: SessionLimits {
        SessionLimits(
            minChunkSize: chunkSizes.lowerBound, maxChunkSize: chunkSizes.upperBound,
            maxFileSize: maxFileSize, maxConcurrentChunks: maxConcurrentChunks, partialBodies: true)
    }
}
