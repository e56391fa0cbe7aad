public import KedgeModel

/// Bytes that did not have the SHA-256 they should have (R120).
public struct DigestMismatch: Sendable, Codable, Hashable {
    /// The chunk; nil for the whole file.
    public var chunk: Int?
    /// Of an upload what was read here, of a download what the server announced.
    public var expectedSha256: SHA256Digest
    /// What the other side received.
    public var actualSha256: SHA256Digest
    /// How often it was noticed; the digests are those of the last time.
    public var count: Int

    init(
        chunk: Int?, expectedSha256: SHA256Digest, actualSha256: SHA256Digest, count: Int = 1
    ) {
        self.chunk = chunk
        self.expectedSha256 = expectedSha256
        self.actualSha256 = actualSha256
        self.count = count
    }
}
