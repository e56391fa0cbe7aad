/// An error on the wire: `application/problem+json` (RFC 9457).
///
/// Members for single codes are optional, so that client and server use one type.
public struct ProblemDocument: Codable, Hashable, Sendable {
    /// `urn:kedge:error:` and the code: an identifier, not an address.
    public var type: String
    /// The code's sentence in the table. For people: programs compare ``code``.
    public var title: String
    /// HTTP status of the response, for readers that see only the body.
    public var status: Int
    /// Details of this case, safe to show to any client; nil when the title is enough.
    public var detail: String?
    /// Text of an ``ErrorCode``, for programs. A string, because a newer server may have codes that
    /// this version does not know.
    public var code: String
    /// The `X-Request-Id` of the response, which finds the log line; nil when there was none.
    public var requestId: String?
    /// `MISSING_CHUNKS`: the missing chunks as inclusive runs `[first, last]`.
    public var missingRanges: [[Int]]?
    /// `OFFSET_MISMATCH`: offset of the next expected byte in the file.
    public var expectedOffset: Int64?
    /// `CHUNK_HASH_MISMATCH`, `INTEGRITY_MISMATCH`: the digest that the server computed.
    /// `CHUNK_CONFLICT`: the digest that was sent.
    public var actualSha256: SHA256Digest?
    /// The digest that ``actualSha256`` was compared with, for the same codes.
    public var expectedSha256: SHA256Digest?
    /// `FILE_TOO_LARGE`: the maximum size in bytes.
    public var maxBytes: Int64?
    /// `QUOTA_EXCEEDED`: maximum of the stored and the reserved bytes of the owner.
    public var limitBytes: Int64?
    /// `QUOTA_EXCEEDED`: bytes of the owner's files.
    public var usedBytes: Int64?
    /// `QUOTA_EXCEEDED`: bytes reserved for the owner's unfinished uploads.
    public var reservedBytes: Int64?
    /// `UNAVAILABLE` from `/readyz`: what is missing, such as `descriptors`, `store` or `stopping`.
    /// `RATE_LIMITED`: the exceeded rate: `requests`, `creates` or `authentication`.
    public var reason: String?

    /// Creates the document of a code, with the table's sentence as its title.
    public init(code: ErrorCode, detail: String? = nil, requestId: String? = nil) {
        self.type = "urn:kedge:error:\(code.rawValue)"
        self.title = code.facts.sentence
        self.status = code.facts.httpStatus ?? 500
        self.detail = detail
        self.code = code.rawValue
        self.requestId = requestId
    }
}
