package import KedgeHash

/// Capabilities that a server reports; nil where it reports none.
package struct ServerCapabilities: Sendable, Equatable {
    /// Maximum size of an upload.
    package var maxSize: Int64?
    /// Maximum size of one request's body.
    package var maxAppendSize: Int64?
    /// Minimum size of each body but the last.
    package var minAppendSize: Int64?
    /// Checksum algorithm for the bodies.
    var checksum: ChecksumAlgorithm?
    /// False if the server reports that it does not support removal.
    var offersRemoval = true

    package init(
        maxSize: Int64? = nil,
        maxAppendSize: Int64? = nil,
        minAppendSize: Int64? = nil,
        checksum: ChecksumAlgorithm? = nil,
        offersRemoval: Bool = true
    ) {
        self.maxSize = maxSize
        self.maxAppendSize = maxAppendSize
        self.minAppendSize = minAppendSize
        self.checksum = checksum
        self.offersRemoval = offersRemoval
    }

    /// Adopts the limits of a later answer.
    mutating func update(with newer: ServerCapabilities?) {
        maxSize = newer?.maxSize ?? maxSize
        maxAppendSize = newer?.maxAppendSize ?? maxAppendSize
        minAppendSize = newer?.minAppendSize ?? minAppendSize
    }
}
