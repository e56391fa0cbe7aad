internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// One download of a stream.
struct StreamDownload: Sendable {
    /// Fetches of a chunk with wrong bytes before the download fails.
    private static let maxWrongFetchCount = 4
    private static let maxAheadByteCount: Int64 = 32 << 20
    /// Largest chunk that is held in memory until it is verified.
    private static let maxChunkByteCount: Int64 = 256 << 20

    let reference: RemoteReference
    let file: RemoteFile
    let fetcher: FileFetcher
    let retry: StreamRetry
    let connectionCount: Int
    let expected: SHA256Digest?
    let pool: @Sendable (@escaping @Sendable () throws -> Void) async throws -> Void
    let write: @Sendable (UnsafeRawBufferPointer) throws -> Void

    /// Chunks and their digests; nil if the server announces none, or chunks too large for memory.
    private var chunks: (layout: ChunkLayout, digests: [SHA256Digest])? {
        guard let size = file.byteCount, let chunkSize = file.chunkSize,
            let digests = file.chunkDigests, min(size, chunkSize) <= Self.maxChunkByteCount
        else { return nil }
        return (ChunkLayout(fileSize: size, chunkSize: chunkSize), digests)
    }

    var verifiesChunks: Bool { chunks != nil || file.byteCount == 0 }

    func run() async throws -> StreamResult {
        var hasher = SHA256Hasher()
        if let chunks {
            try await writeChunks(chunks.digests, chunks.layout, &hasher)
        } else if file.byteCount != 0 {
            try await writeAsItArrives(&hasher)
        }
        let digest = hasher.digest()
        if let expected, digest != expected {
            throw TransferError(
                .integrityMismatch, operation: "download",
                explanation:
                    "The bytes written have the SHA-256 \(digest); \(expected) was expected.")
        }
        let id: FileID? = if case .file(let id) = reference { id } else { nil }
        return StreamResult(
            fileID: id, byteCount: hasher.byteCount, sha256: digest,
            verification: expected == nil ? .unverified : .sha256)
    }

    /// Fetches chunks ahead, and writes them in order.
    private func writeChunks(
        _ digests: [SHA256Digest], _ layout: ChunkLayout, _ hasher: inout SHA256Hasher
    ) async throws {
        let aheadCount = Int(
            max(1, min(Int64(connectionCount), Self.maxAheadByteCount / layout.chunkSize)))
        try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            var nextIndex = 0
            var ready: [Int: [UInt8]] = [:]
            func fetchNext() {
                guard nextIndex < digests.count else { return }
                let index = nextIndex
                nextIndex += 1
                group.addTask { (index, try await chunk(index, layout, digests[index])) }
            }
            for _ in 0..<aheadCount { fetchNext() }
            for index in digests.indices {
                while ready[index] == nil, let (arrived, bytes) = try await group.next() {
                    ready[arrived] = bytes
                }
                guard let bytes = ready.removeValue(forKey: index) else {
                    preconditionFailure("each chunk is fetched once")
                }
                hasher.update(bytes)
                try await pool { try bytes.withUnsafeBytes { try write($0) } }
                fetchNext()
            }
        }
    }

    private func chunk(
        _ index: Int, _ layout: ChunkLayout, _ digest: SHA256Digest
    ) async throws -> [UInt8] {
        guard let range = layout.range(ofChunk: index) else {
            preconditionFailure("each digest belongs to a chunk")
        }
        var retry = retry
        var wrongCount = 0
        var wrongDigests: Set<SHA256Digest> = []
        while true {
            var bytes: [UInt8] = []
            while bytes.count < range.byteCount {
                let before = bytes.count
                let missing = ByteRange(start: range.start + Int64(before), end: range.end)
                do {
                    try await receive(missing) { bytes += $0 }
                    retry.noteProgress()
                } catch let failure as RequestFailure {
                    if bytes.count > before { retry.noteProgress() }
                    try await retry.wait(after: failure)
                }
            }
            let arrived = SHA256Hasher.digest(of: bytes)
            if arrived == digest { return bytes }
            wrongCount += 1
            wrongDigests.insert(arrived)
            let failure = RequestFailure(.chunkHashMismatch, operation: "get file")
            guard wrongCount < Self.maxWrongFetchCount else {
                throw TransferError(
                    .chunkHashMismatch, operation: "get file",
                    explanation: "Chunk \(index) (bytes \(range.start) to \(range.end - 1)) arrived"
                        + " \(wrongCount) times with bytes that do not match the SHA-256 that the"
                        + " server announced. Nothing of it was written."
                        // A damaging network makes different bytes each time.
                        + (wrongDigests.count == 1
                            ? " The bytes were the same each time: the server's copy is damaged."
                                + " It is repaired by `kedge upload --again FILE`, run where the"
                                + " file is still whole." : ""),
                    cause: failure)
            }
            try await retry.wait(after: failure)
        }
    }

    /// Writes bytes without a check. After a break, the next request continues where the server can
    /// prove that the file is the same.
    private func writeAsItArrives(_ hasher: inout SHA256Hasher) async throws {
        var retry = retry
        var offset: Int64 = 0
        while true {
            let before = offset
            do {
                let range = file.byteCount.map { ByteRange(start: offset, end: $0) }
                // The first request takes the whole file: not every server has ranges.
                let asked = offset == 0 ? nil : range
                for try await bytes in try await pieces(asked, from: offset) {
                    hasher.update(bytes)
                    try await pool { try bytes.withUnsafeBytes { try write($0) } }
                    offset += Int64(bytes.count)
                }
                return
            } catch let failure as RequestFailure {
                guard offset == 0 || file.isResumable else {
                    throw TransferError(
                        .remoteChanged, operation: "download",
                        explanation: "The connection broke after \(offset) bytes, and the server"
                            + " cannot continue there.", cause: failure)
                }
                if offset > before { retry.noteProgress() }
                try await retry.wait(after: failure)
            }
        }
    }

    /// Requests exactly this range of a file whose size is known.
    private func receive(
        _ range: ByteRange, _ take: ([UInt8]) -> Void
    ) async throws {
        for try await bytes in try await pieces(range, from: range.start) { take(bytes) }
    }

    /// Requests a range, or the whole file, and returns its bytes as they arrive.
    ///
    /// - Throws: ``RequestFailure``, also while the bytes are read; `REMOTE_CHANGED`.
    private func pieces(
        _ range: ByteRange?, from start: Int64
    ) async throws -> StreamBody {
        let reply = try await fetcher.get(file.url, range: range, validator: file.validator)
        let answer = reply.answer
        guard let range, let total = file.byteCount else {
            guard reply.status == 200 else {
                throw await fetcher.failure(of: reply, to: reference)
            }
            if let failure = fetcher.codingFailure(of: reply) { throw failure }
            return StreamBody(body: reply.body, byteCount: file.byteCount, answer: answer)
        }
        switch RangeResponseCheck(
            status: reply.status, fields: reply.headerFields, asked: range, total: total,
            validator: file.validator)
        {
        case .accepted:
            return StreamBody(body: reply.body, byteCount: range.byteCount, answer: answer)
        case .changed:
            throw TransferError(
                .remoteChanged, operation: "download",
                explanation: "The file changed on the server; \(start) bytes of the old version"
                    + " were written or read.")
        case .rangesIgnored, .violation:
            throw RequestFailure(.protocolViolation, operation: "get file", answer: answer)
        case .refused:
            throw await fetcher.failure(of: reply, to: reference)
        }
    }
}

/// The bytes of an answer, of exactly the announced number.
private struct StreamBody: AsyncSequence {
    let body: TransportResponseBody
    /// Nil if it is unknown.
    let byteCount: Int64?
    let answer: ServerAnswer

    func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    struct Iterator: AsyncIteratorProtocol {
        let body: StreamBody
        var count: Int64 = 0

        mutating func next() async throws -> [UInt8]? {
            do {
                guard let bytes = try await body.body.next() else {
                    guard body.byteCount.map({ $0 == count }) ?? true else {
                        throw TransportError(.dropped)
                    }
                    return nil
                }
                count += Int64(bytes.count)
                guard body.byteCount.map({ count <= $0 }) ?? true else {
                    throw RequestFailure(
                        .protocolViolation, operation: "get file", answer: body.answer)
                }
                return bytes
            } catch let error as TransportError {
                // A connection that ends after the last byte lost nothing.
                if body.byteCount == count { return nil }
                throw RequestFailure(error, operation: "get file", answer: body.answer)
            }
        }
    }
}
