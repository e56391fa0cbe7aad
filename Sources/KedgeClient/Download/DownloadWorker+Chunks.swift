internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

extension DownloadWorker {
    /// Memory that one chunk in flight holds: a buffer to write from, what the transport keeps before
    /// it pauses, and what libcurl could not hand over.
    private static let bufferByteCount: Int64 = 3 << 20

    /// Fetches what is missing, several chunks at a time (R126).
    func fetchMissingChunks(into temp: TempFile, hash: PrefixHash) async throws {
        guard let layout = download.layout else { return }
        window = ConcurrencyWindow(
            wish: context.configuration.connections, serverLimit: nil,
            bufferByteCount: Self.bufferByteCount,
            budgetByteCount: WorkerContext.bufferBudgetByteCount)
        // What an earlier run left is read while the rest arrives.
        hash.follow(upTo: contiguousByteCount)
        let missing = confirmed.missingRanges(of: layout.chunkCount ?? 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            var inFlightCount = 0
            for index in missing.joined() {
                while inFlightCount >= window.limit {
                    try await group.next()
                    inFlightCount -= 1
                }
                guard let range = layout.range(ofChunk: index) else { continue }
                group.addTask {
                    try await self.fetch(index, range: range, into: temp, hash: hash)
                }
                inFlightCount += 1
            }
            try await group.waitForAll()
        }
    }

    /// Fetches one chunk until it is complete, verified and durable. An interrupted one goes on where
    /// it stopped.
    private func fetch(
        _ index: Int, range: ByteRange, into temp: TempFile, hash: PrefixHash
    ) async throws {
        hash.turns.enter(end: range.end)
        defer { hash.turns.leave(end: range.end) }
        let turn = FileHashTurn(hash, start: range.start, environment: context.environment)
        var part = ChunkPart()
        var uncountedTries = 1
        while true {
            try Task.checkCancellation()
            let before = part.byteCount
            do {
                let answer = try await fetchPart(
                    range: range, into: temp, turn: turn, part: &part)
                try await check(part.chunk, of: index, answer: answer)
                if let file = part.file { hash.turns.announce(file.after, from: file.before) }
                let chunk = ConfirmedChunk(
                    index: index, endOffset: range.end, attempts: uncountedTries)
                try await confirm(chunk, in: temp, hash: hash, answer: answer)
                return
            } catch let failure as RequestFailure {
                if failure.isCongestion { window.recordCongestion() }
                if failure.isCanceled { throw CancellationError() }
                guard failure.isRetryable else { throw failure }
                if failure.code == .chunkHashMismatch || failure.code == .protocolViolation {
                    // What arrived is in doubt: this chunk alone is fetched again (R16, R137).
                    part = ChunkPart()
                }
                if part.byteCount > before {
                    uncountedTries += 1
                    try await context.keeper.noteProgress(chunk: index)
                } else {
                    try await context.keeper.backOff(after: failure, chunk: index)
                }
            }
        }
    }

    private func check(_ part: SHA256Hasher, of index: Int, answer: ServerAnswer) async throws {
        let digest = part.digest()
        guard let digests = remote.chunkDigests, digests.indices.contains(index),
            digests[index] != digest
        else { return }
        try await context.store.recordMismatch(
            DigestMismatch(chunk: index, expectedSha256: digests[index], actualSha256: digest),
            of: context.lease)
        throw RequestFailure(.chunkHashMismatch, operation: "get file", answer: answer)
    }

    /// Asks for what is missing of a chunk and writes what comes, up to the first trouble.
    ///
    /// - Parameter part: What there is of the chunk; goes on with every byte written, also when this
    ///   throws.
    private func fetchPart(
        range: ByteRange, into temp: TempFile, turn: FileHashTurn, part: inout ChunkPart
    ) async throws -> ServerAnswer {
        let asked = ByteRange(start: range.start + part.byteCount, end: range.end)
        let (total, etag) = (download.expectedSize ?? 0, download.etag ?? "")
        let response = try await fetcher.get(remote.url, range: asked, etag: etag)
        let answer = fetcher.answer(of: response)
        try await context.keeper.noteAnswer()
        switch RangeVerdict(
            status: response.status, fields: response.headerFields, asked: asked, total: total,
            etag: etag)
        {
        case .accepted:
            break
        case .changed:
            throw Self.remoteChanged(answer)
        case .rangesIgnored:
            isSequential = true
            throw DownloadRestart(
                error: TransferError(
                    .protocolViolation, operation: "get file",
                    explanation: "The server does not serve ranges."))
        case .violation:
            throw RequestFailure(.protocolViolation, operation: "get file", answer: answer)
        case .refused:
            throw await fetcher.failure(of: response)
        }
        var writer = BodyWriter(
            file: temp.file, start: range.start, part: part, turn: turn, buffers: buffers,
            context: context)
        defer { writer.finish() }
        let trouble = try await receive(
            response.body, byteCount: asked.byteCount, into: &writer, answer: answer)
        part = writer.part
        if let trouble { throw trouble }
        return answer
    }

    /// Writes a body of exactly `byteCount` bytes.
    ///
    /// - Returns: What went wrong on the network, after every byte that arrived was written.
    /// - Throws: What went wrong on the disk.
    private func receive(
        _ body: TransportResponseBody, byteCount: Int64, into writer: inout BodyWriter,
        answer: ServerAnswer
    ) async throws -> RequestFailure? {
        var receivedCount: Int64 = 0
        var trouble: RequestFailure?
        do {
            while let piece = try await body.next() {
                receivedCount += Int64(piece.count)
                guard receivedCount <= byteCount else {
                    return RequestFailure(
                        .protocolViolation, operation: "get file", answer: answer)
                }
                try await writer.append(piece)
            }
            if receivedCount < byteCount {
                trouble = RequestFailure(
                    TransportError(.dropped), operation: "get file", answer: answer)
            }
        } catch let error as TransportError {
            // A connection that ends after the last byte took nothing with it.
            if receivedCount < byteCount {
                trouble = RequestFailure(error, operation: "get file", answer: answer)
            }
        }
        try await writer.flush()
        return trouble
    }

    /// Makes a complete chunk durable: sync first, then its bit. Chunks that complete while a sync
    /// is under way share the next one.
    ///
    /// After a failed sync none counts any more in this run: the kernel may have taken earlier writes
    /// for clean, also those to chunks that are complete only now (fsync(2)).
    private func confirm(
        _ chunk: ConfirmedChunk, in temp: TempFile, hash: PrefixHash, answer: ServerAnswer
    ) async throws {
        if let syncFailure { throw syncFailure }
        unsynced.append(chunk)
        guard !isSyncing else { return }
        isSyncing = true
        defer { isSyncing = false }
        while !unsynced.isEmpty {
            let batch = unsynced
            unsynced = []
            do {
                try await context.onDisk("sync", "download's folder") { try temp.file.syncData() }
            } catch {
                syncFailure = error
                throw error
            }
            try await context.store.confirmChunks(
                batch, answer: answer, of: context.lease)
            for chunk in batch {
                confirmed.insert(chunk.index)
                hash.turns.accept(stepAt: Int64(chunk.index) * download.chunkSize)
                window.recordSuccess()
                try await context.keeper.noteProgress(chunk: chunk.index)
            }
            hash.follow(upTo: contiguousByteCount)
        }
    }

    /// Confirmed bytes from the start of the file, up to the first gap.
    private var contiguousByteCount: Int64 {
        min(Int64(confirmed.contiguousCount) * download.chunkSize, download.expectedSize ?? 0)
    }
}
