import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `GET /files/{fileId}` with `Range` (RFC 9110 section 14).
@Suite(.timeLimit(.minutes(1))) struct DownloadRangeTests {
    private static let byteCount = 5000
    private static let content = sampleBytes(byteCount)

    private static func asking(
        _ range: String, _ body: @Sendable (HTTPAnswer) throws -> Void
    ) async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(content, mimeType: "text/plain")
            let path = "/files/\(file.remoteFileId)"
            let answer = try await server.get(path, [("Range", range)])
            try body(answer)
        }
    }

    struct Cut: Sendable {
        var range: String
        var first: Int
        var last: Int
    }

    /// R83, R84, R98: numbers beyond any file mean its end.
    @Test(arguments: [
        Cut(range: "bytes=0-0", first: 0, last: 0), Cut(range: "bytes=0-999", first: 0, last: 999),
        Cut(range: "bytes=2000-2999", first: 2000, last: 2999),
        Cut(range: "bytes=4999-4999", first: 4999, last: 4999),
        Cut(range: "bytes=4000-", first: 4000, last: 4999),
        Cut(range: "bytes=0-", first: 0, last: 4999),
        Cut(range: "bytes=-1", first: 4999, last: 4999),
        Cut(range: "bytes=-5000", first: 0, last: 4999),
        Cut(range: "bytes=-5001", first: 0, last: 4999),
        Cut(range: "bytes=4999-5000", first: 4999, last: 4999),
        Cut(range: "BYTES=0-0", first: 0, last: 0), Cut(range: "bytes= 0-0 ", first: 0, last: 0),
        Cut(range: "bytes=,1-2,", first: 1, last: 2),
        Cut(range: "bytes=1-2,9000-", first: 1, last: 2),
        // RFC 9110 section 15.3.7.2: overlapping and adjacent ranges become one.
        Cut(range: "bytes=0-9,5-14", first: 0, last: 14),
        Cut(range: "bytes=10-19,0-9", first: 0, last: 19),
        Cut(range: "bytes=0-,0-,0-,-5000", first: 0, last: 4999),
        Cut(range: "bytes=0-2999,100-200,2000-", first: 0, last: 4999),
        Cut(
            range: "bytes=" + (0..<16).map { "\(15 - $0)-\(15 - $0)" }.joined(separator: ","),
            first: 0, last: 15),
        Cut(range: "bytes=7-9223372036854775807", first: 7, last: 4999),
        Cut(range: "bytes=7-9223372036854775808", first: 7, last: 4999),
        Cut(range: "bytes=7-18446744073709551616", first: 7, last: 4999),
        Cut(range: "bytes=-18446744073709551616", first: 0, last: 4999),
    ])
    func `a single range is answered with its Content-Range`(cut: Cut) async throws {
        try await Self.asking(cut.range) { answer in
            #expect(answer.status == 206)
            #expect(
                answer.field("Content-Range") == "bytes \(cut.first)-\(cut.last)/\(Self.byteCount)")
            #expect(answer.field("Content-Length") == String(cut.last - cut.first + 1))
            #expect(answer.field("Content-Type") == "text/plain")
            // `Repr-Digest` covers the whole file, so a client can distinguish versions (RFC 9530).
            let digest = DigestHeader.rfc9530(SHA256Hasher.digest(of: Self.content))
            #expect(answer.field("Repr-Digest") == digest)
            #expect(answer.body == Array(Self.content[cut.first...cut.last]))
        }
    }

    @Test(arguments: [
        "bytes=5000-", "bytes=5000-5000", "bytes=-0", "bytes=9000-,8000-9000",
        "bytes=9223372036854775807-", "bytes=9223372036854775808-",
        "bytes=18446744073709551616-18446744073709551617",
    ])
    func `a range without a byte of the file is refused with the size`(
        range: String
    ) async throws {
        try await Self.asking(range) { answer in
            try expectProblem(answer, .rangeNotSatisfiable)
            #expect(answer.field("Content-Range") == "bytes */\(Self.byteCount)")
        }
    }

    /// RFC 9110 section 14.2: the server ignores malformed ranges.
    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=1-0", "bytes=0",
        "bytes=--1", "bytes=0-1-2", "bytes=0-1;2-3", "bytes=+0-1", "bytes=0x0-1", "bytes=1e3-",
        "bytes=" + (0...200).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ","),
        "bytes=0 - 1", "bytes=0-0,1-0", "items=0-1", "bytes 0-1", "bytes=٠-١",
    ])
    func `a malformed range gives the whole file`(range: String) async throws {
        try await Self.asking(range) { answer in
            #expect(answer.status == 200)
            #expect(answer.field("Content-Range") == nil)
            #expect(answer.body == Self.content)
        }
    }

    struct Selection: Sendable {
        var range: String
        var cuts: [ClosedRange<Int>]
    }

    @Test(arguments: [
        Selection(range: "bytes=0-0,-1", cuts: [0...0, 4999...4999]),
        Selection(range: "bytes=100-199, 0-9, 4990-", cuts: [100...199, 0...9, 4990...4999]),
        Selection(range: "bytes=1-1,9000-,3-3", cuts: [1...1, 3...3]),
        Selection(
            range: "bytes=" + (0..<200).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ","),
            cuts: (0..<200).map { ($0 * 2)...($0 * 2) }),
        Selection(
            range: "bytes=" + (0..<300).map { "\($0)-\($0)" }.joined(separator: ",") + ",-1",
            cuts: [0...299, 4999...4999]),
        Selection(range: "bytes=50-59,0-9,5-14,20-29", cuts: [50...59, 0...14, 20...29]),
        Selection(range: "bytes=30-39,0-9,20-29,5-6", cuts: [20...39, 0...9]),
        Selection(range: "bytes=10-19,0-0,12-13,15-24,-1", cuts: [10...24, 0...0, 4999...4999]),
    ])
    func `several ranges come in one multipart answer, each with its Content-Range`(
        selection: Selection
    ) async throws {
        try await Self.asking(selection.range) { answer in
            #expect(answer.status == 206)
            #expect(answer.field("Content-Range") == nil)
            let parts = try MultipartByteRanges(answer).parts
            #expect(
                parts.map(\.contentRange)
                    == selection.cuts.map {
                        "bytes \($0.lowerBound)-\($0.upperBound)/\(Self.byteCount)"
                    })
            #expect(parts.allSatisfy { $0.contentType == "text/plain" })
            #expect(parts.map(\.body) == selection.cuts.map { Array(Self.content[$0]) })
        }
    }

    @Test(arguments: ["bytes=0-", "bytes=0-0", "bytes=-1"])
    func `an empty file satisfies no range`(range: String) async throws {
        try await SharedServer.use { server in
            let file = try await server.upload([])
            let path = "/files/\(file.remoteFileId)"
            let answer = try await server.get(path, [("Range", range)])
            try expectProblem(answer, .rangeNotSatisfiable)
            #expect(answer.field("Content-Range") == "bytes */0")
        }
    }

    /// R85: a client that lost its connection assembles the file like this.
    @Test func `ranges in any order make the file`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(Self.content)
            var generator = SplitMix64(seed: 5)
            var assembled = [UInt8](repeating: 0, count: Self.byteCount)
            for start in stride(from: 0, to: Self.byteCount, by: 700).shuffled(using: &generator) {
                let answer = try await server.get(
                    "/files/\(file.remoteFileId)",
                    [("Range", "bytes=\(start)-\(start + 699)"), ("If-Range", file.etag)])
                #expect(answer.status == 206)
                assembled.replaceSubrange(start..<(start + answer.body.count), with: answer.body)
            }
            #expect(assembled == Self.content)
        }
    }
}
