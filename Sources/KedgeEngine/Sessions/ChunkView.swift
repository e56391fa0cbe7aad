internal import KedgeLocks
internal import KedgeModel

/// A snapshot of one chunk's state.
struct ChunkView: Sendable {
    let layout: ChunkLayout
    /// Set when the chunk is committed.
    let digest: SHA256Digest?
    let partial: PartialRecord?
    /// The durable first bytes of another body.
    let rival: PartialRecord?
}
