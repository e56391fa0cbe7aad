import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

extension AppendChecksum {
    /// Computes the checksum of the bytes.
    init(_ algorithm: ChecksumAlgorithm, of bytes: some Sequence<UInt8>) {
        var hasher = ChecksumHasher(algorithm)
        hasher.update(Array(bytes))
        self.init(algorithm: algorithm, bytes: hasher.checksum())
    }
}

/// Checksums of every algorithm, sent before the body or after it.
@Suite(.timeLimit(.minutes(1))) struct AppendAlgorithmTests {
    enum Time: CaseIterable, Sendable {
        case before
        case after
    }

    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func put(
        at offset: Int, _ checksum: AppendChecksum, _ time: Time
    ) -> AppendPut {
        switch time {
        case .before: AppendPut(offset: Int64(offset), checksum: checksum)
        case .after:
            AppendPut(offset: Int64(offset), lateChecksum: { checksum })
        }
    }

    private func append(
        _ bytes: some Sequence<UInt8>, _ put: AppendPut, to upload: Upload, on node: Node,
        ending: ScriptedBody.Ending = .ends
    ) async throws -> Int64 {
        try await node.engine.append(
            put, to: upload.id, owner: upload.owner, body: ScriptedBody(bytes, ending: ending))
    }

    @Test(arguments: ChecksumAlgorithm.allCases, Time.allCases)
    func `the right checksum makes the append count`(
        algorithm: ChecksumAlgorithm, time: Time
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        // The append covers the rest of a chunk, a committed chunk and the first bytes of another.
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        try await node.put(1, of: upload)
        let piece = upload.content[300..<2300]
        let end = try await append(
            piece, put(at: 300, AppendChecksum(algorithm, of: piece), time), to: upload, on: node)
        #expect(end == 2300)
        node = try await node.restart()
        #expect(try await node.offset(of: upload) == 2300)
        _ = try await node.append(upload.content.dropFirst(2300), to: upload, at: 2300)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: ChecksumAlgorithm.allCases, Time.allCases)
    func `a wrong checksum leaves everything as it was`(
        algorithm: ChecksumAlgorithm, time: Time
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        let before = try await node.status(of: upload)
        let piece = upload.content[300..<2300]
        let wrong = AppendChecksum(algorithm, of: piece.dropLast())
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await append(piece, put(at: 300, wrong, time), to: upload, on: node)
        }
        #expect(try await node.status(of: upload) == before)
    }

    @Test func `a checksum that is too short is wrong`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        for algorithm in ChecksumAlgorithm.allCases {
            var cut = AppendChecksum(algorithm, of: upload.content)
            cut.bytes.removeLast()
            await #expect(throws: EngineError(.chunkHashMismatch)) {
                try await append(upload.content, put(at: 0, cut, .before), to: upload, on: node)
            }
        }
        #expect(try await node.offset(of: upload) == 0)
    }

    @Test func `an append whose late checksum cannot be read does not count`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let put = AppendPut(
            offset: 0,
            lateChecksum: { throw EngineError(.badRequest, "no such algorithm") })
        await #expect(throws: EngineError(.badRequest)) {
            try await append(upload.content.prefix(1300), put, to: upload, on: node)
        }
        #expect(try await node.status(of: upload).receivedBytes == 0)
    }

    @Test func `a body that breaks off before its late checksum does not count`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let wasAsked = Shared(false)
        let put = AppendPut(
            offset: 0,
            lateChecksum: {
                wasAsked.update { $0 = true }
                return .sha256(upload.digest)
            })
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await append(
                upload.content.prefix(1300), put, to: upload, on: node, ending: .breaksOff)
        }
        #expect(try await node.status(of: upload).receivedBytes == 0)
        #expect(!wasAsked.value)
    }

    @Test func `checksums before and after the body must both be right`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        var put = AppendPut(offset: 0, checksum: AppendChecksum(.md5, of: upload.content))
        put.lateChecksum = { AppendChecksum(.sha1, of: [1]) }
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await append(upload.content, put, to: upload, on: node)
        }
        put.lateChecksum = { AppendChecksum(.sha1, of: upload.content) }
        put.checksum = AppendChecksum(.crc32c, of: [1])
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await append(upload.content, put, to: upload, on: node)
        }
        put.checksum = AppendChecksum(.crc32c, of: upload.content)
        #expect(try await append(upload.content, put, to: upload, on: node) == 2500)
    }
}
