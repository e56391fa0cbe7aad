package import KedgeHash
package import KedgeModel

/// Limits and times of the engine.
package struct EngineConfiguration: Sendable {
    /// Smallest and largest chunk size a session may ask for, in bytes. Larger chunks mean fewer
    /// rows and requests; smaller ones mean less to verify again after damage.
    package var chunkSizes: ClosedRange<Int64> = (256 << 10)...(64 << 20)
    /// Chunk sizes of new sessions are multiples of it, in bytes: whole blocks of SHA-256
    /// (FIPS 180-4). Sessions of earlier versions may have others; they take two passes of hashing.
    package var chunkSizeMultiple: Int64 = 64
    /// Chunk size of sessions that do not ask for one, in bytes.
    package var defaultChunkSize: Int64 = ChunkLayout.defaultChunkSize
    /// Largest file size accepted, in bytes.
    package var maxFileSize: Int64 = 1 << 40
    /// Number of chunks that one client should have in flight. Advertised to clients, not enforced.
    package var maxConcurrentChunks = 8
    /// Maximum number of bodies written at once, over all sessions. Further bodies are refused with
    /// `BUSY` before they are read. Bounds memory and descriptors: each body uses three buffers,
    /// which are smaller when there are many bodies.
    package var maxConcurrentWrites = 64
    /// Rate in bytes a second below which a body is slow. A slow body can lose its place when
    /// another body waits for one.
    package var slowBodyBytesPerSecond: Int64 = 64 << 10
    /// Time spent waiting for bytes over which the rate of a body is measured.
    package var slowBodyGrace: Duration = .seconds(2)
    /// Time until a session expires after its last activity.
    package var sessionLifetime: Duration = .seconds(7 * 24 * 3600)
    /// Time until a session without a byte expires.
    package var emptySessionLifetime: Duration = .seconds(3600)
    /// Maximum number of open sessions, over all owners and nodes. At the limit, a session without
    /// a byte makes room for a new one.
    package var maxOpenSessions = 10_000
    /// Limits of each owner without limits of its own.
    package var quota = QuotaLimits.none
    /// Time for which a new session can adopt the bytes of an expired one.
    package var expiryGrace: Duration = .seconds(24 * 3600)
    /// Maximum lag of the whole-file hash behind the committed prefix, in bytes. Beyond it,
    /// acknowledgements wait for the hash. Bounds the time that finalize takes.
    package var maxHashLag: Int64 = 32 << 20
    /// Time that finalize waits for the whole-file hash before it answers "pending".
    package var finalizeTimeout: Duration = .seconds(20)
    /// Timeout of requests that are answered only with the finished file. After it they fail with
    /// `UNAVAILABLE`. The finalize goes on, or resumes when the client asks again.
    package var finishTimeout: Duration = .seconds(180)
    /// Interval at which the bytes of an incomplete chunk are synced and recorded. A killed process
    /// costs the client about what it sent in this time. A shorter interval means more syncs on
    /// slow links.
    package var checkpointInterval: Duration = .seconds(2)
    /// New bytes of a chunk that are recorded without waiting for the interval. Chunks of the
    /// default size stay below it and need no further sync. Larger chunks are synced about once for
    /// each such number of bytes.
    package var checkpointByteCount: Int64 = 16 << 20
    /// Minimum number of new bytes that a checkpoint records when the interval is over.
    package var minCheckpointByteCount: Int64 = 64 << 10
    /// Size of the buffers for request bodies, in bytes. Buffers get smaller when many bodies
    /// arrive at once.
    package var bufferCapacity = 512 << 10
    /// Memory for all buffers, in bytes. When it is used up, only buffers of the smallest size are
    /// lent.
    package var bufferByteCount = 6 << 20
    /// Limits of the wait of a chunk's first bytes for the chunks before them in the ordered
    /// hashing of the file.
    package var hashStepLimits = FileHashStep.Limits()
    /// Time that a writer may go on after a newer request wants the same bytes. A hung writer
    /// delays the newer request by this time. A writer whose bytes still arrive gets up to four
    /// times as long, so that the last bytes of a closed connection are saved.
    package var takeoverGrace: Duration = .milliseconds(200)
    /// Time after which an idle session is evicted from memory. The next request loads it again.
    package var idleSessionLifetime: Duration = .seconds(60)
    /// Number of open staging areas above which idle sessions are evicted at once. Each area holds
    /// a descriptor.
    package var maxIdleStagingAreas = 256
    /// Smallest chunk size that the byte store can keep, in bytes. A session that asks for less
    /// gets the default.
    package var minStoredChunkSize: Int64 = 1
    /// Maximum number of chunks that the byte store can assemble into one file.
    package var maxChunkCount = ChunkLayout.maxChunkCount
    /// Duration of a node's lease on a chunk, unless renewed. A node that waits for the chunk takes
    /// it over after ``fleetTakeoverGrace``, even while the lease runs.
    package var writerLease: Duration = .seconds(10)
    /// Time that the writer of a chunk on another node has to save its bytes before it is replaced.
    package var fleetTakeoverGrace: Duration = .milliseconds(600)
    /// Interval at which a node asks whether the other node has released the chunk.
    package var fleetTakeoverStep: Duration = .milliseconds(50)
    /// Duration of a node's lease on a finalize, unless renewed. A dead node delays the finalize by
    /// this time.
    package var finalizeLease: Duration = .seconds(15)
    /// Bytes between two saved checkpoints of the whole-file hash while bytes are read back.
    package var sharedHashStep: Int64 = 128 << 20
    /// Largest body with a checksum, in bytes. No byte of such a body counts before its end.
    package var maxCheckedByteCount: Int64 = 1 << 30
    /// Maximum number of partial uploads of one final upload.
    package var maxSourceCount = 1000
    /// Maximum number of final uploads that can use the same partial upload. Each copies its bytes:
    /// without a limit, a few requests that list the same partial uploads in other orders would
    /// fill the disk.
    package var maxConcatenationsPerPartialUpload = 8
    /// Maximum number of concatenations that copy bytes at once.
    package var maxConcurrentCopies = 2
    /// Largest total size of the metadata keys and values that a client sets for one session, in
    /// bytes.
    package var maxMetadataByteCount = 8 << 10

    /// Target time from the upload of a file to its first scrub. Not guaranteed, because transfers
    /// go first.
    package var scrubNewFilesWithin: Duration = .seconds(3600)
    /// Longest time between two scrubs of a file; zero scrubs each file only once.
    package var scrubPeriod: Duration = .seconds(30 * 24 * 3600)
    /// Maximum number of bytes a second that the scrub reads while no transfers are under way.
    /// During transfers it reads at most an eighth of that.
    package var scrubBytesPerSecond: Int64 = 64 << 20
    /// Duration of a node's lease on a blob that it scrubs, unless renewed. Must be longer than
    /// reading one chunk takes during transfers.
    package var scrubLease: Duration = .seconds(900)
    /// Interval at which the scrub renews its lease and checks for more urgent work.
    package var scrubRenewal: Duration = .seconds(20)
    /// Time until a damaged blob is read again. A disk that failed for a while may return the bytes
    /// again.
    package var damagedScrubPeriod: Duration = .seconds(3600)
    /// Time until a blob is read again that the store could not read.
    package var undecidedScrubPause: Duration = .seconds(600)
    /// Time for which a superseded copy is kept. Must be longer than public URLs are valid. Nodes
    /// keep the copies that their own readers have open.
    package var supersededLifetime: Duration = .seconds(3600)

    /// Longest time since the last verification of stored bytes that a new session may use.
    package var verificationLifetime: Duration {
        scrubPeriod > .zero ? scrubPeriod : .seconds(30 * 24 * 3600)
    }

    package init() {}

    /// True when a file of this size has no more chunks than the store can keep.
    func fits(_ fileSize: Int64, inChunksOf chunkSize: Int64) -> Bool {
        (fileSize - 1) / chunkSize < Int64(maxChunkCount)
    }

    /// The limits that are advertised to clients.
    package var limits: SessionLimits {
        SessionLimits(
            minChunkSize: chunkSizes.lowerBound, maxChunkSize: chunkSizes.upperBound,
            maxFileSize: maxFileSize, maxConcurrentChunks: maxConcurrentChunks, partialBodies: true)
    }
}
