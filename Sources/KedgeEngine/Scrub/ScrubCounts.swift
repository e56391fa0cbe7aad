internal import KedgeModel

/// What the scrub of this process has done since its start.
package struct ScrubCounts: Hashable, Sendable {
    /// Blobs that were read and found right.
    package var verifiedCount = 0
    /// Blobs that were found damaged.
    package var damagedCount = 0
    /// Damaged blobs in whose place an earlier copy was put.
    package var restoredCount = 0
    /// Bytes that were read.
    package var byteCount: Int64 = 0

    package init() {}
}
