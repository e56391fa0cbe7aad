internal import KedgeModel

/// Counters of this process's scrub since its start.
package struct ScrubCounts: Hashable, Sendable {
    /// Blobs that were read and found right.
    package var verifiedCount = 0
    /// Blobs that were found damaged.
    package var damagedCount = 0
    /// Damaged blobs that were replaced by an earlier copy.
    package var restoredCount = 0
    /// Bytes that were read.
    package var byteCount: Int64 = 0

    package init() {}
}
