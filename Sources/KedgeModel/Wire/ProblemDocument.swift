/// An error as it travels: `application/problem+json` (RFC 9457).
///
/// Members that belong to one code only are optional here, so that one type serves both ends.
public struct ProblemDocument: Codable, Hashable, Sendable {
    /// `urn:kedge:error:` and the code; names the problem and leads nowhere.
    public var type: String
    /// The sentence that the table has for the code. For people: programs compare ``code``.
    public var title: String
    /// HTTP status of the answer, repeated for readers that see only the body.
    public var status: Int
    /// What is special about this case, safe for strangers; nil when the title says it all.
    public var detail: String?
    /// Text of an ``ErrorCode``, for programs to decide by. Kept as text, because a newer server
    /// may know codes that we do not.
    public var code: String
    /// The answer's `X-Request-Id`, which finds the log line; nil when none came along.
    public var requestId: String?
    /// `MISSING_CHUNKS`: the absent chunks as inclusive runs `[first, last]`.
    public var missingRanges: [[Int]]?
    /// `OFFSET_MISMATCH`: where in the file the next byte is expected.
    public var expectedOffset: Int64?
    /// `CHUNK_HASH_MISMATCH`, `INTEGRITY_MISMATCH`: the digest the server computed;
    /// `CHUNK_CONFLICT`: the one that was sent.
    public var actualSha256: SHA256Digest?
    /// The digest that ``actualSha256`` was held against, under the same codes.
    public var expectedSha256: SHA256Digest?
    /// `FILE_TOO_LARGE`: the largest size taken, in bytes.
    public var maxBytes: Int64?
    /// `UNAVAILABLE` from `/readyz`: what is missing, such as `descriptors`, `store` or `stopping`.
    public var reason: String?

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
