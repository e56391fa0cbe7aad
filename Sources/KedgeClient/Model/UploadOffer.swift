internal import HTTPTypes
internal import KedgeHash
internal import KedgeModel

/// Capabilities that a server reports; nil where it reports none.
struct UploadOffer: Sendable, Equatable {
    /// Maximum size of an upload.
    var maxSize: Int64?
    /// Maximum size of one request's body.
    var maxAppendSize: Int64?
    /// Minimum size of each body but the last.
    var minAppendSize: Int64?
    /// Checksum algorithm for the bodies.
    var checksum: ChecksumAlgorithm?
    /// False if the server reports that it does not support removal.
    var offersRemoval = true

    /// Adopts the limits of a later answer.
    mutating func update(with newer: UploadOffer?) {
        maxSize = newer?.maxSize ?? maxSize
        maxAppendSize = newer?.maxAppendSize ?? maxAppendSize
        minAppendSize = newer?.minAppendSize ?? minAppendSize
    }
}
