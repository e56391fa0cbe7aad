import KedgeHash
import KedgeModel
import KedgeTesting

/// The file of an ``EvilOrigin``, with the answers of an honest one.
struct EvilFile: Sendable {
    static let id = "0123456789abcdef0123456789abcdef"
    static let tag = "\"one\""
    /// Small, so that few bytes make many chunks.
    static let chunkByteCount = 64 << 10

    /// More than one chunk of a download by URL, and less than two.
    static let usualByteCount = 4 << 20 + 70_001

    let bytes: [UInt8]
    let digest: SHA256Digest
    /// Whether the origin serves ranges.
    let isRanged: Bool

    private static let usualBytes = SampleFile.bytes(usualByteCount, seed: 29)
    private static let usualDigest = SHA256Hasher.digest(of: usualBytes)

    init(byteCount: Int, isRanged: Bool) {
        self.isRanged = isRanged
        if byteCount == Self.usualByteCount {
            (bytes, digest) = (Self.usualBytes, Self.usualDigest)
        } else {
            bytes = Array(Self.usualBytes.prefix(byteCount))
            digest = SHA256Hasher.digest(of: bytes)
        }
    }

    /// The answer of an honest origin.
    func answer(to request: HTTPMessage) -> EvilAnswer {
        switch request.path {
        case "/files/\(Self.id)/meta": EvilAnswer(200, type: "application/json", meta())
        case "/files/\(Self.id)/chunks": EvilAnswer(200, type: "application/json", chunks())
        default: content(request)
        }
    }

    private func content(_ request: HTTPMessage) -> EvilAnswer {
        var answer = EvilAnswer()
        answer["ETag"] = Self.tag
        answer["Accept-Ranges"] = isRanged ? "bytes" : "none"
        if let wanted = request["if-match"], wanted != Self.tag {
            answer.statusLine = "HTTP/1.1 412 Precondition Failed"
            answer.setBody([])
            return answer
        }
        guard isRanged, let range = request.range, range.upperBound <= bytes.count,
            request["if-range"].map({ $0 == Self.tag }) ?? true
        else {
            answer.setBody(bytes[...])
            return answer
        }
        answer.statusLine = "HTTP/1.1 206 Partial Content"
        answer["Content-Range"] = Self.contentRange(range, of: bytes.count)
        answer.setBody(bytes[range])
        return answer
    }

    /// Value of `Content-Range`.
    static func contentRange(_ range: Range<Int>, of total: Int) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
    }

    /// Answer to `GET /files/{id}/meta`, with the given values in it.
    func meta(
        name: String = "file.bin", size: String? = nil, sha256: String? = nil,
        etag: String = tag, chunkSize: String = "\(chunkByteCount)"
    ) -> String {
        let etag = etag.replacing("\"", with: "\\\"")
        return """
            {"remoteFileId":"\(Self.id)","fileName":"\(name)","size":\(size ?? "\(bytes.count)"),\
            "sha256":"\(sha256 ?? digest.hex)","etag":"\(etag)","chunkSize":\(chunkSize),\
            "createdAt":"2026-01-02T03:04:05.000Z"}
            """
    }

    /// Answer to `GET /files/{id}/chunks`, with changed digests in it.
    func chunks(
        size: Int = chunkByteCount, _ change: (inout [String]) -> Void = { _ in }
    ) -> String {
        var digests = stride(from: 0, to: bytes.count, by: size).map { start in
            SHA256Hasher.digest(of: Array(bytes[start..<min(start + size, bytes.count)])).hex
        }
        change(&digests)
        let list = digests.map { "\"\($0)\"" }.joined(separator: ",")
        return "{\"chunkSize\":\(size),\"sha256\":[\(list)]}"
    }
}
