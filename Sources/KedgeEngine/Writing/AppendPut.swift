package import KedgeHash
package import KedgeModel

/// A checksum of one request's body.
package struct AppendChecksum: Hashable, Sendable {
    package var algorithm: ChecksumAlgorithm
    package var bytes: [UInt8]

    package init(algorithm: ChecksumAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Returns a SHA-256 checksum with this digest.
    package static func sha256(_ digest: SHA256Digest) -> AppendChecksum {
        AppendChecksum(algorithm: .sha256, bytes: digest.bytes)
    }
}

/// A write at the end of the contiguous bytes, for tus and IETF uploads and for a whole body in one
/// request.
package struct AppendPut: Sendable {
    /// Offset of the body's first byte; must be the session's contiguous offset.
    package var offset: Int64
    /// Checksum of this body. No byte of the append then counts before its end, and none at all
    /// unless the checksum matches.
    package var checksum: AppendChecksum?
    /// True when the file ends with this body.
    package var completes: Bool
    /// Size of the file if it is declared with this body; set once. Durable before the body's first
    /// byte, or, with a checksum, after the checksum has matched.
    package var declaredSize: Int64?
    /// Returns a checksum that follows the body. Called once, at the body's end. Its algorithm is
    /// unknown until then, so all are computed, which is slower than with a checksum sent first.
    package var lateChecksum: (@Sendable () async throws -> AppendChecksum)?
    /// True when the client can resume after an interruption.
    package var isResumable = true

    package init(
        offset: Int64, checksum: AppendChecksum? = nil, completes: Bool = false,
        declaredSize: Int64? = nil,
        lateChecksum: (@Sendable () async throws -> AppendChecksum)? = nil
    ) {
        self.offset = offset
        self.checksum = checksum
        self.completes = completes
        self.declaredSize = declaredSize
        self.lateChecksum = lateChecksum
    }

    /// True when no byte may count before the body's end.
    var countsAtItsEnd: Bool { checksum != nil || lateChecksum != nil }
}
