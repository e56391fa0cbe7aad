import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting

/// A file that a test sends.
struct Upload: Sendable {
    let id: SessionID
    let owner: OwnerID
    let content: [UInt8]
    let chunkSize: Int
    /// False for a session whose size is declared at its end.
    var hasSize = true

    var digest: SHA256Digest { SHA256Hasher.digest(of: content) }
    var chunkCount: Int { (content.count + chunkSize - 1) / chunkSize }

    func range(_ index: Int) -> Range<Int> {
        index * chunkSize..<min((index + 1) * chunkSize, content.count)
    }

    func chunk(_ index: Int) -> [UInt8] { Array(content[range(index)]) }

    /// Makes a request that sends a chunk from one of its bytes on.
    ///
    /// - Parameter end: Where the body ends in the chunk; nil for the end of the chunk.
    func put(
        _ index: Int, from start: Int = 0, upTo end: Int? = nil, digest: SHA256Digest? = nil
    ) -> ChunkPut {
        let range = range(index)
        let bytes = ByteRange(
            start: Int64(range.lowerBound + start),
            end: Int64(end.map { range.lowerBound + $0 } ?? range.upperBound))
        return ChunkPut(
            index: index,
            contentRange: ContentRange(range: bytes, total: hasSize ? Int64(content.count) : nil),
            digest: digest ?? SHA256Hasher.digest(of: chunk(index)))
    }
}

extension OwnerID {
    static let tester = OwnerID("tester")
    static let stranger = OwnerID("stranger")
}

/// Bytes that look random and are the same in every run.
func sampleBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SplitMix64(seed: seed)
    return generator.bytes(count)
}

/// A test's access to a running engine, over any stores.
protocol EngineHolder: Sendable {
    var engine: TransferEngine { get }
}

extension EngineHolder {
    /// Creates a session for the content.
    func begin(
        _ content: [UInt8], owner: OwnerID = .tester, chunkSize: Int = 1000,
        declaring digest: SHA256Digest? = nil, adopting: SessionID? = nil, sized: Bool = true
    ) async throws -> Upload {
        let status = try await engine.createSession(
            NewSession(
                fileName: "ship's log.txt", fileSize: sized ? Int64(content.count) : nil,
                mimeType: "text/plain", chunkSize: Int64(chunkSize), declaredDigest: digest,
                adopting: adopting),
            owner: owner)
        return Upload(
            id: status.sessionId, owner: owner, content: content, chunkSize: chunkSize,
            hasSize: sized)
    }

    /// Sends a chunk, or its rest from `start` on.
    ///
    /// - Parameters:
    ///   - count: Number of bytes that really arrive; nil for all.
    ///   - ending: What happens after them.
    @discardableResult
    func put(
        _ index: Int, of upload: Upload, from start: Int = 0, sending count: Int? = nil,
        ending: ScriptedBody.Ending = .ends
    ) async throws -> ChunkPutOutcome {
        let rest = upload.chunk(index).dropFirst(start)
        let body = ScriptedBody(
            rest.prefix(count ?? rest.count), announcing: rest.count, ending: ending)
        return try await put(upload.put(index, from: start), of: upload, body)
    }

    /// Sends a part of a chunk that ends before the chunk does.
    @discardableResult
    func putPart(
        _ index: Int, of upload: Upload, _ part: Range<Int>
    ) async throws -> ChunkPutOutcome {
        let put = upload.put(index, from: part.lowerBound, upTo: part.upperBound)
        return try await self.put(put, of: upload, ScriptedBody(upload.chunk(index)[part]))
    }

    @discardableResult
    func put(
        _ put: ChunkPut, of upload: Upload, _ body: ScriptedBody
    ) async throws -> ChunkPutOutcome {
        try await engine.putChunk(put, to: upload.id, owner: upload.owner, body: body)
    }

    /// Sends some bytes of a chunk over a connection that then breaks.
    func breakOff(_ index: Int, of upload: Upload, from start: Int = 0, after count: Int) async {
        do {
            try await put(index, of: upload, from: start, sending: count, ending: .breaksOff)
        } catch {
            // The sender never sees an answer either.
        }
    }

    func append(
        _ bytes: some Sequence<UInt8>, to upload: Upload, at offset: Int,
        checksum: SHA256Digest? = nil, completes: Bool = false, announcing count: Int? = nil,
        ending: ScriptedBody.Ending = .ends
    ) async throws -> Int64 {
        try await engine.append(
            AppendPut(
                offset: Int64(offset), checksum: checksum.map { .sha256($0) },
                completes: completes),
            to: upload.id, owner: upload.owner,
            body: ScriptedBody(bytes, announcing: count, ending: ending))
    }

    func status(of upload: Upload) async throws -> SessionStatus {
        try await engine.sessionStatus(upload.id, owner: upload.owner)
    }

    func offset(of upload: Upload) async throws -> Int64 {
        try await engine.contiguousOffset(of: upload.id, owner: upload.owner)
    }

    /// Sends every chunk in order.
    func putAll(of upload: Upload) async throws {
        for index in 0..<upload.chunkCount { try await put(index, of: upload) }
    }

    /// Repeats finalize until the file is there.
    func finish(
        _ upload: Upload, expecting digest: SHA256Digest? = nil
    ) async throws -> FileRecord {
        while true {
            let outcome = try await engine.finalize(
                upload.id, owner: upload.owner, expecting: digest)
            if case .completed(let file) = outcome { return file }
        }
    }

    /// Uploads everything and finalizes.
    func file(_ content: [UInt8], owner: OwnerID = .tester) async throws -> FileRecord {
        let upload = try await begin(content, owner: owner)
        try await putAll(of: upload)
        return try await finish(upload)
    }

    /// The bytes of a file as a download gives them.
    func content(of file: FileRecord) async throws -> [UInt8] {
        let opened = try await engine.openFile(file)
        var bytes: [UInt8] = []
        while Int64(bytes.count) < file.byteCount {
            let offset = Int64(bytes.count)
            bytes += try await engine.read(opened, at: offset, upTo: file.byteCount - offset) {
                Array($0)
            }
        }
        await opened.reader.close()
        return bytes
    }
}

extension ChunkPutOutcome {
    /// True when this request committed the chunk.
    var isCreated: Bool {
        if case .created = self { true } else { false }
    }

    var receipt: ChunkReceipt {
        switch self {
        case .created(let receipt), .alreadyReceived(let receipt): receipt
        case .partial: preconditionFailure("a part of a chunk has no receipt")
        }
    }

    /// Durable bytes of a chunk that is not complete; nil when it is.
    var partByteCount: Int64? {
        if case .partial(let chunk) = self { chunk.receivedBytes } else { nil }
    }
}

extension EngineHolder {
    /// Reads back everything that is due.
    func scrubAll() async throws {
        while try await engine.scrubNext() {}
        try await engine.tendScrub()
    }
}
