public import KedgeModel

/// Bytes whose SHA-256 differs from the expected one.
public struct DigestMismatch: Sendable, Codable, Hashable {
    /// The chunk's index; nil for the whole file.
    public var chunk: Int?
    /// For an upload, the digest computed here; for a download, the one the server announced.
    public var expectedSha256: SHA256Digest
    /// Digest of the bytes that the receiving side got.
    public var actualSha256: SHA256Digest
    /// Number of times a mismatch was noticed; the digests are those of the last time.
    public var count: Int

    package init(
        chunk: Int?, expectedSha256: SHA256Digest, actualSha256: SHA256Digest, count: Int = 1
    ) {
        self.chunk = chunk
        self.expectedSha256 = expectedSha256
        self.actualSha256 = actualSha256
        self.count = count
    }
}
