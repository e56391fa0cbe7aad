import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// R61, R62: a session's status on the wire, written and read.
struct SessionStatusFormTests {
    private static let time = Timestamp(millisecondsSinceEpoch: 1_763_688_608_123)
    private static let sparse = ChunkSet([5, 0, 1, 2])

    private static func status(
        _ received: ChunkSet = sparse, fileName: String = "a", state: SessionState = .open
    ) -> SessionStatus {
        SessionStatus(
            sessionId: SessionID(wellFormed: String(repeating: "a", count: 32)), state: state,
            fileName: fileName, fileSize: 600, chunkSize: 100, totalChunks: 6, received: received,
            receivedBytes: 430, partialChunks: [PartialChunk(index: 3, receivedBytes: 30)],
            expiresAt: time, fileHashSha256: nil, remoteFileId: nil)
    }

    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    /// Expects the same text from the full form's writer and from the encoder.
    private func expectSameText(
        _ status: SessionStatus, at location: SourceLocation = #_sourceLocation
    ) throws {
        let expected = ControlCharacters.escaped(json: try Self.encoder().encode(status))
        #expect(status.text(.full) == expected, sourceLocation: location)
    }

    @Test func `the full status text equals the encoder's, with every member`() throws {
        var status = Self.status(state: .completed)
        status.fileHashSha256 = SHA256Digest(bytes: [UInt8](repeating: 7, count: 32))
        status.remoteFileId = FileID(wellFormed: String(repeating: "b", count: 32))
        status.partialChunks.append(
            PartialChunk(index: 4, receivedBytes: 1, sha256: status.fileHashSha256))
        status.receivedDigests = [try #require(status.fileHashSha256)]
        for partialBodies in [nil, true, false] {
            status.limits = SessionLimits(
                minChunkSize: 1, maxChunkSize: 2, maxFileSize: 3, maxConcurrentChunks: 4,
                partialBodies: partialBodies)
            try expectSameText(status)
            let read = try JSONDecoder().decode(SessionStatus.self, from: Data(status.text(.full)))
            #expect(read.limits == status.limits)
        }
    }

    @Test func `the full status text equals the encoder's, with the fewest members`() throws {
        var status = Self.status(ChunkSet())
        (status.fileSize, status.totalChunks, status.partialChunks) = (nil, nil, [])
        try expectSameText(status)
    }

    @Test(arguments: [Int64.min, -10, -1, 0, 9, 10, 99, 100, .max])
    func `the full status text equals the encoder's for any number`(number: Int64) throws {
        var status = Self.status()
        (status.fileSize, status.chunkSize, status.receivedBytes) = (number, number, number)
        try expectSameText(status)
    }

    @Test(arguments: [
        "", "a/b", #"say "x" \ y"#, "né\u{301}e", "船荷証券.pdf", "😀👩‍👩‍👧",
        "\u{7F}\u{80}\u{2028}\u{FEFF}\u{FFFF}", "\u{200F}\u{202E}\u{2066}\u{200D}",
        String(String.UnicodeScalarView((0..<0x30).compactMap { Unicode.Scalar($0) })),
    ])
    func `the full status text equals the encoder's for any name`(name: String) throws {
        try expectSameText(Self.status(fileName: name))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `the full status text equals the encoder's for any chunks`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let bound = [10, 130, 2000].randomElement(using: &generator) ?? 10
        let indexes = (0..<bound).filter { _ in Bool.random(using: &generator) }
        try expectSameText(Self.status(ChunkSet(indexes)))
    }

    @Test func `the status with ranges leaves out only the list of chunks`() throws {
        func members(_ form: SessionStatus.Form) throws -> NSMutableDictionary {
            let object = try JSONSerialization.jsonObject(with: Data(Self.status().text(form)))
            return NSMutableDictionary(dictionary: try #require(object as? [String: Any]))
        }
        let full = try members(.full)
        #expect(full["receivedChunks"] as? [Int] == [0, 1, 2, 5])
        full.removeObject(forKey: "receivedChunks")
        let ranges = try members(.ranges)
        #expect(ranges == full)
        #expect(ranges["receivedRanges"] as? [[Int]] == [[0, 2], [5, 5]])
    }

    @Test func `the status with ranges of 100,000 chunks without gaps takes at most 4 KiB`() throws
    {
        let status = Self.status(
            ChunkSet(0..<100_000), fileName: String(repeating: "\"", count: FileName.maxByteCount))
        #expect(status.text(.ranges).count <= 4 << 10)
    }

    @Test(arguments: SessionStatus.Form.allCases)
    func `both forms of the status read back`(form: SessionStatus.Form) throws {
        let status = Self.status()
        let text = Data(status.text(form))
        #expect(try JSONDecoder().decode(SessionStatus.self, from: text) == status)
    }

    /// Reads the chunks from a status with these members.
    private func read(_ members: String) throws -> [Int] {
        let text = try #require(
            String(bytes: Self.status().text(.ranges), encoding: .utf8)
        ).replacing(#""receivedRanges":[[0,2],[5,5]]"#, with: members)
        return try JSONDecoder().decode(SessionStatus.self, from: Data(text.utf8)).receivedChunks
    }

    @Test(arguments: [
        (#""receivedChunks":[2,0]"#, [0, 2]),
        (#""receivedChunks":[-1,-9223372036854775808,3,1048576,9223372036854775807]"#, [3]),
        (#""receivedRanges":[[0,1],[4,4]]"#, [0, 1, 4]),
        (#""receivedRanges":[]"#, []),
        (#""receivedRanges":[[-3,-2],[-1,1]]"#, [0, 1]),
        (#""receivedRanges":[[-9223372036854775808,0]]"#, [0]),
        (#""receivedRanges":[[1048575,9223372036854775807]]"#, [1_048_575]),
        (#""receivedRanges":[[1048576,1048577]]"#, []),
    ])
    func `chunks that no file can have are ignored`(members: String, chunks: [Int]) throws {
        #expect(try read(members) == chunks)
    }

    @Test(arguments: [
        #""receivedRanges":[[2,1]]"#, #""receivedRanges":[[0,5],[5,6]]"#,
        #""receivedRanges":[[4,5],[0,1]]"#, #""receivedRanges":[[0,1048575],[0,1048575]]"#,
        #""receivedRanges":[[1]]"#, #""receivedRanges":[[]]"#, #""receivedRanges":[[0,1,2]]"#,
        #""receivedRanges":[0]"#, #""receivedChunks":null"#, #""received":[]"#,
    ])
    func `malformed ranges and missing chunk lists are refused`(members: String) {
        #expect(throws: DecodingError.self) { try read(members) }
    }
}
