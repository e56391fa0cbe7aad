/// An error as it travels: `application/problem+json` (RFC 9457).
///
/// Members that belong to one code only are optional here, so that one type serves both ends.
public struct ProblemDocument: Codable, Hashable, Sendable {
    public var type: String
    public var title: String
    public var status: Int
    public var detail: String?
    /// Text of an ``ErrorCode``; kept as text, because a newer server may know codes that we do not.
    public var code: String
    public var requestId: String?
    /// `MISSING_CHUNKS`: the absent chunks as inclusive runs `[first, last]`.
    public var missingRanges: [[Int]]?
    /// `OFFSET_MISMATCH`: where the next byte is expected.
    public var expectedOffset: Int64?
    /// `CHUNK_HASH_MISMATCH`, `INTEGRITY_MISMATCH`: the digest the server computed.
    public var actualSha256: SHA256Digest?
    /// `CHUNK_HASH_MISMATCH`, `INTEGRITY_MISMATCH`, `CHUNK_CONFLICT`: the digest it was held against.
    public var expectedSha256: SHA256Digest?
    /// `FILE_TOO_LARGE`, `REQUEST_TOO_LARGE`: the largest size taken, in bytes.
    public var maxBytes: Int64?

    /// The document of a code, with the table's sentence as title.
    public init(code: ErrorCode, detail: String? = nil, requestId: String? = nil) {
        self.type = "urn:kedge:error:\(code.rawValue)"
        self.title = code.facts.sentence
        self.status = code.facts.httpStatus ?? 500
        self.detail = detail
        self.code = code.rawValue
        self.requestId = requestId
    }
}
