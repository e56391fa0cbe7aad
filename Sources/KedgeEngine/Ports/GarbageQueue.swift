package import KedgeModel

/// Bytes that no row refers to any more, for the sweep to remove.
package enum Garbage: Hashable, Sendable {
    /// The rest of a staging area, with the state that the byte store recorded for it.
    case staging(StagingKey, state: String? = nil)
    /// A blob that is named by its digest.
    case blob(SHA256Digest)
}

/// Stores which bytes are to be removed, and which are still in use. Each operation is one
/// transaction, as in ``MetadataStore``.
package protocol GarbageQueue: Sendable {
    /// Leases garbage to this node for removal. Drops blobs that a file or a finalizing session
    /// needs again from the garbage instead.
    func claimGarbage(now: Timestamp, leaseUntil: Timestamp, limit: Int) async throws -> [Garbage]

    /// Deletes the row of garbage whose bytes are gone. The row stays when the garbage was added
    /// again, or claimed by another node, since the claim that ends at `end`.
    func forgetGarbage(_ garbage: Garbage, claimedUntil end: Timestamp) async throws

    /// Adds a staging area to the garbage, for bytes that arrived after its session had ended. Does
    /// nothing while a session has the area.
    func addToGarbage(_ key: StagingKey) async throws

    /// Returns true while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) async throws -> Bool

    /// Returns true while a session or the garbage names these bytes.
    func isKnown(_ key: StagingKey) async throws -> Bool

    /// Returns the location of the blob that the area became, while a file needs it or it is kept
    /// as a superseded copy. Nil otherwise, and for blobs named by their digest.
    func blobLocation(fromStaging key: StagingKey) async throws -> String?
}
