package import KedgeHash
package import KedgeModel

/// A checksum of the bytes that one request carries.
package struct AppendChecksum: Hashable, Sendable {
    package var algorithm: ChecksumAlgorithm
    package var bytes: [UInt8]

    package init(algorithm: ChecksumAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// The SHA-256 of the bytes.
    package static func sha256(_ digest: SHA256Digest) -> AppendChecksum {
        AppendChecksum(algorithm: .sha256, bytes: digest.bytes)
    }
}

/// Bytes that go on where the contiguous ones end: the write of tus and IETF uploads, and of a whole
/// body in one request.
package struct AppendPut: Sendable {
    /// Where the body starts; must be the session's contiguous offset.
    package var offset: Int64
    /// Checksum of this body. With it nothing of the append counts before its end, and nothing at all unless
    /// the bytes have it.
    package var checksum: AppendChecksum?
    /// True when the file ends with this body.
    package var completes: Bool
    /// Size of the file, when it is told with this body. Durable before the first byte is, or, with a
    /// checksum, after that was right; set once.
    package var declaredSize: Int64?
    /// For a checksum that comes after the body: asked once, at its end. Its algorithm is not known until
    /// then, so all are computed: slower than a checksum that is told first.
    package var lateChecksum: (@Sendable () async throws -> AppendChecksum)?
    /// True when the client knows how to go on after an interruption.
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

    /// True when nothing may count before the body's end.
    var countsAtItsEnd: Bool { checksum != nil || lateChecksum != nil }
}
