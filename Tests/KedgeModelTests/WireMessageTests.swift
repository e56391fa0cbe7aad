import Foundation
import KedgeModel
import Testing

/// The field names that the requirements fix (R47–R54, R61, R66, R87, R93).
struct WireMessageTests {
    private static let time = Timestamp(millisecondsSinceEpoch: 1_763_688_608_000)

    private let session = SessionID(wellFormed: String(repeating: "a", count: 32))
    private let file = FileID(wellFormed: String(repeating: "b", count: 32))
    private let digest: SHA256Digest

    init() throws {
        digest = try #require(SHA256Digest(bytes: [UInt8](repeating: 7, count: 32)))
    }

    /// Encodes the message, checks the names of its members, and decodes it again.
    private func expect<Message: Codable & Equatable>(
        _ message: Message, has names: Set<String>, at location: SourceLocation = #_sourceLocation
    ) throws {
        let data = try JSONEncoder().encode(message)
        let object = try #require(
            try JSONSerialization.jsonObject(with: data) as? [String: Any], sourceLocation: location
        )
        #expect(Set(object.keys) == names, sourceLocation: location)
        let read = try JSONDecoder().decode(Message.self, from: data)
        #expect(read == message, sourceLocation: location)
    }

    @Test func `a create request has the agreed members and reads back`() throws {
        try expect(
            CreateSessionRequest(
                fileName: "é\"\\\n", fileSize: 5 << 40, mimeType: "text/plain", chunkSize: 1,
                fileHashSha256: digest, metadata: ["k": "v"], adoptSessionId: session),
            has: [
                "fileName", "fileSize", "mimeType", "chunkSize", "fileHashSha256", "metadata",
                "adoptSessionId",
            ])
        try expect(CreateSessionRequest(fileName: "a", fileSize: 0), has: ["fileName", "fileSize"])
    }

    @Test func `a create response has the agreed members and reads back`() throws {
        let limits = SessionLimits(
            minChunkSize: 1, maxChunkSize: 2, maxFileSize: .max, maxConcurrentChunks: 4)
        try expect(
            limits, has: ["minChunkSize", "maxChunkSize", "maxFileSize", "maxConcurrentChunks"])
        try expect(
            CreateSessionResponse(
                sessionId: session, expiresAt: Self.time, state: .open, fileSize: 9, chunkSize: 4,
                totalChunks: 3, receivedBytes: 0, limits: limits,
                requiredHeaders: ["X-Chunk-Hash"]),
            has: [
                "sessionId", "expiresAt", "state", "fileSize", "chunkSize", "totalChunks",
                "receivedBytes", "limits", "requiredHeaders",
            ])
    }

    @Test func `a chunk receipt has the agreed members and reads back`() throws {
        try expect(
            ChunkReceipt(
                index: 1, sha256: digest, receivedBytes: 8, receivedChunkCount: 2, totalChunks: 3),
            has: ["index", "sha256", "receivedBytes", "receivedChunkCount", "totalChunks"])
    }

    @Test func `a session status has the agreed members and reads back`() throws {
        let status = SessionStatus(
            sessionId: session, state: .completed, fileName: "a", fileSize: 600, chunkSize: 100,
            totalChunks: 6, received: ChunkSet([5, 0, 1, 2]), receivedBytes: 430,
            partialChunks: [PartialChunk(index: 3, receivedBytes: 30)], expiresAt: Self.time,
            fileHashSha256: digest, remoteFileId: file)
        #expect(status.receivedChunks == [0, 1, 2, 5])
        #expect(status.receivedRanges == [[0, 2], [5, 5]])
        try expect(
            status,
            has: [
                "sessionId", "state", "fileName", "fileSize", "chunkSize", "totalChunks",
                "receivedChunks", "receivedRanges", "receivedBytes", "partialChunks", "expiresAt",
                "fileHashSha256", "remoteFileId",
            ])
        try expect(status.partialChunks[0], has: ["index", "receivedBytes"])
    }

    @Test func `the finalize messages have the agreed members and read back`() throws {
        try expect(FinalizeRequest(fileHashSha256: digest), has: ["fileHashSha256"])
        try expect(FinalizeRequest(), has: [])
        try expect(
            FinalizeResponse(remoteFileId: file, fileHashSha256: digest, size: 1, etag: "\"e\""),
            has: ["remoteFileId", "fileHashSha256", "size", "etag"])
        try expect(
            FinalizePending(sessionId: session, state: .finalizing, verifiedBytes: 7),
            has: ["sessionId", "state", "verifiedBytes"])
    }

    @Test func `the file messages have the agreed members and read back`() throws {
        let meta = FileMeta(
            remoteFileId: file, fileName: "a", size: 1, sha256: digest, mimeType: "a/b",
            etag: "\"e\"",
            chunkSize: 4, createdAt: Self.time)
        let names: Set = [
            "remoteFileId", "fileName", "size", "sha256", "mimeType", "etag", "chunkSize",
            "createdAt",
        ]
        try expect(meta, has: names)
        var bare = meta
        bare.mimeType = nil
        try expect(bare, has: names.subtracting(["mimeType"]))
        var dated = meta
        dated.mtime = "any text"
        try expect(dated, has: names.union(["mtime"]))
        try expect(FileChunks(chunkSize: 4, sha256: [digest]), has: ["chunkSize", "sha256"])
        try expect(FileList(files: [meta], next: "x"), has: ["files", "next"])
        try expect(FileList(files: [], next: nil), has: ["files"])
    }

    @Test(arguments: ErrorCode.allCases)
    func `a problem document has the facts of the error table and reads back`(code: ErrorCode)
        throws
    {
        var problem = ProblemDocument(code: code, detail: "d", requestId: "r")
        #expect(problem.code == code.rawValue)
        #expect(problem.status == code.facts.httpStatus ?? 500)
        #expect(problem.title == code.facts.sentence)
        let common: Set = ["type", "title", "status", "detail", "code", "requestId"]
        try expect(problem, has: common)
        problem.missingRanges = [[0, 2]]
        problem.expectedOffset = 1
        problem.actualSha256 = digest
        problem.expectedSha256 = digest
        problem.maxBytes = 2
        let own: Set = [
            "missingRanges", "expectedOffset", "actualSha256", "expectedSha256", "maxBytes",
        ]
        try expect(problem, has: common.union(own))
    }

    @Test(arguments: [
        "", "{", "[]", "null", #"{"fileName":"a"}"#, #"{"fileName":1,"fileSize":1}"#,
        #"{"fileName":"a","fileSize":"1"}"#, #"{"fileName":"a","fileSize":1.5}"#,
        #"{"fileName":"a","fileSize":9223372036854775808}"#,
        #"{"fileName":"a","fileSize":1,"fileHashSha256":"abc"}"#,
        #"{"fileName":"a","fileSize":1,"adoptSessionId":"../"}"#,
        #"{"fileName":"a","fileSize":1,"metadata":{"a":1}}"#, #"{"fileName":"a","fileSize":null}"#,
    ])
    func `a create request of the wrong shape is refused`(text: String) {
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode(CreateSessionRequest.self, from: Data(text.utf8))
        }
    }
}
