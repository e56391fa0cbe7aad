internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

extension DownloadWorker {
    /// Memory that one chunk in flight holds: a buffer to write from, what the transport keeps before
    /// it pauses, and what libcurl could not hand over.
    private static let bufferByteCount: Int64 = 3 << 20
    /// How often a chunk is fetched that arrives with the same wrong digest each time.
    static let maxFetchCount = 3

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
    /// it stopped, also when it is another run that goes on.
    private func fetch(
        _ index: Int, range: ByteRange, into temp: TempFile, hash: PrefixHash
    ) async throws {
        hash.turns.enter(end: range.end)
        defer { hash.turns.leave(end: range.end) }
        let turn = FileHashTurn(hash, start: range.start, environment: context.environment)
        var chunk = try await takeUp(index, range: range, turn: turn, from: temp)
        do {
            while try await !advance(&chunk, into: temp, hash: hash) {}
        } catch {
            // The run ends for that reason, and not for one that is found while it ends.
            try? await makeDurable(&chunk)
            throw error
        }
    }

    /// Makes one try at what is missing of a chunk.
    ///
    /// - Returns: True when the chunk is complete.
    private func advance(
        _ chunk: inout ChunkFetch, into temp: TempFile, hash: PrefixHash
    ) async throws -> Bool {
        try Task.checkCancellation()
        let before = chunk.part.byteCount
        do {
            // An earlier run may have stopped after the last byte.
            let answer = chunk.isWhole ? nil : try await fetchPart(of: &chunk, into: temp)
            try await check(&chunk, answer: answer)
            if let file = chunk.part.file { hash.turns.announce(file.after, from: file.before) }
            let confirmed = ConfirmedChunk(
                index: chunk.index, endOffset: chunk.range.end, attempts: chunk.uncountedTries)
            try await confirm(confirmed, answer: answer)
            return true
        } catch let failure as RequestFailure {
            if failure.isCongestion { window.recordCongestion() }
            if failure.isCanceled { throw CancellationError() }
            guard failure.isRetryable else { throw failure }
            let brought = chunk.part.byteCount > before
            if failure.code == .chunkHashMismatch || failure.code == .protocolViolation && brought {
                // What arrived is in doubt: this chunk alone is fetched again (R16, R137).
                try await discard(&chunk)
            }
            if failure.code == .chunkHashMismatch { try refuseHopeless(chunk, failure) }
            if chunk.part.byteCount > before {
                chunk.uncountedTries += 1
                try await note(&chunk)
                try await context.keeper.noteProgress(chunk: chunk.index)
            } else {
                // The wait may be long.
                try await makeDurable(&chunk)
                try await backOff(after: failure, chunk: chunk.index)
            }
            return false
        }
    }

    /// Waits before the next try.
    ///
    /// Content may come from elsewhere than the service, as from a bucket that it points to. So where the
    /// answer is a wrong one, the service itself is asked whether it is there, and waited for.
    func backOff(after failure: RequestFailure, chunk: Int?) async throws {
        let isWrong = [.notKedge, .protocolViolation, .redirected].contains(failure.code)
        guard isWrong, failure.answer != nil, case .file(let id) = download.reference else {
            return try await context.keeper.backOff(after: failure, chunk: chunk)
        }
        let api = context.api
        _ = try await context.keeper.retrying(chunk: chunk ?? 0) { try await api.fileMeta(id) }
        try await context.keeper.backOff(after: failure, chunk: chunk, isReachable: true)
    }

    /// A link that damages bytes damages others each time, and so heals by itself. The same wrong bytes
    /// again and again are what the origin has: more fetches cannot help.
    private func refuseHopeless(_ chunk: ChunkFetch, _ failure: RequestFailure) throws {
        guard chunk.sameDigestCount >= Self.maxFetchCount else { return }
        let last = chunk.range.end - 1
        throw TransferError(
            .chunkHashMismatch, operation: "get file",
            explanation: "Chunk \(chunk.index) (bytes \(chunk.range.start) to \(last)) arrived"
                + " \(chunk.sameDigestCount) times with the same bytes, and they do not have the"
                + " SHA-256 that the server announced.",
            cause: failure)
    }

    private func check(_ chunk: inout ChunkFetch, answer: ServerAnswer?) async throws {
        let (index, digest) = (chunk.index, chunk.part.chunk.digest())
        guard let digests = remote.chunkDigests, digests.indices.contains(index),
            digests[index] != digest
        else { return }
        chunk.noteWrong(digest)
        try await context.store.recordMismatch(
            DigestMismatch(chunk: index, expectedSha256: digests[index], actualSha256: digest),
            of: context.lease)
        throw RequestFailure(.chunkHashMismatch, operation: "get file", answer: answer)
    }

    /// Asks for what is missing of a chunk and writes what comes, up to the first trouble.
    ///
    /// - Parameter chunk: Its part goes on with every byte written, also when this throws.
    private func fetchPart(
        of chunk: inout ChunkFetch, into temp: TempFile
    ) async throws -> ServerAnswer {
        let overlap = try await overlap(before: &chunk, in: temp)
        let missing = chunk.missing
        let asked = ByteRange(start: missing.start - overlap.byteCount, end: missing.end)
        let (total, validator) = (download.expectedSize ?? 0, download.validator ?? .weak(""))
        let response = try await fetcher.get(remote.url, range: asked, validator: validator)
        let answer = fetcher.answer(of: response)
        try await context.keeper.noteAnswer()
        switch RangeVerdict(
            status: response.status, fields: response.headerFields, asked: asked, total: total,
            validator: validator)
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
            // Where bytes came through before, something on the way may do this for a while.
            if !hasProgress, chunk.part.byteCount == 0,
                let failure = fetcher.codingFailure(of: response)
            {
                throw failure
            }
            throw RequestFailure(.protocolViolation, operation: "get file", answer: answer)
        case .refused:
            throw await fetcher.failure(of: response, to: download.reference)
        }
        var writer = BodyWriter(
            file: temp.file, start: chunk.range.start, part: chunk.part, turn: chunk.turn,
            buffers: buffers, context: context)
        let trouble: RequestFailure?
        do {
            trouble = try await receive(
                response.body, after: overlap, of: &chunk, into: &writer, answer: answer)
        } catch {
            chunk.part = writer.part
            throw error
        }
        chunk.part = writer.part
        if let trouble { throw trouble }
        return answer
    }

    /// Writes a body of exactly the bytes that are missing, and records them on the way.
    ///
    /// - Returns: What went wrong on the network, after every byte that arrived was written.
    /// - Throws: What went wrong on the disk.
    private func receive(
        _ body: TransportResponseBody, after overlap: Overlap, of chunk: inout ChunkFetch,
        into writer: inout BodyWriter, answer: ServerAnswer
    ) async throws -> RequestFailure? {
        var overlap = overlap
        let knownByteCount = overlap.byteCount
        let byteCount = knownByteCount + chunk.missing.byteCount
        var receivedCount: Int64 = 0
        var trouble: RequestFailure?
        do {
            while let piece = try await body.next() {
                receivedCount += Int64(piece.count)
                guard receivedCount <= byteCount else {
                    return RequestFailure(
                        .protocolViolation, operation: "get file", answer: answer)
                }
                guard let fresh = overlap.strip(piece) else { throw Self.remoteChanged(answer) }
                try await writer.append(fresh)
                try await record(&chunk, &writer)
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
        chunk.noteArrival(of: receivedCount, overlapping: knownByteCount)
        try await writer.flush()
        return trouble
    }

    /// Makes a complete chunk durable: sync first, then its bit. Chunks that complete while a sync
    /// is under way share the next one.
    ///
    /// After a failed sync none counts any more in this run: the kernel may have taken earlier writes
    /// for clean, also those to chunks that are complete only now (fsync(2)).
    private func confirm(_ chunk: ConfirmedChunk, answer: ServerAnswer?) async throws {
        unsynced.append(chunk)
        try await syncWaiting(answer: answer)
    }

    /// Syncs the file and then records what waits for that, chunks and parts of chunks; returns at once
    /// when another task is doing so.
    func syncWaiting(answer: ServerAnswer?) async throws {
        if let syncFailure { throw syncFailure }
        guard !isSyncing, let file = temp?.file else { return }
        isSyncing = true
        defer { isSyncing = false }
        while !unsynced.isEmpty || !unsyncedPartials.isEmpty {
            let chunks = unsynced
            (unsynced, syncingPartials, unsyncedPartials) = ([], unsyncedPartials, [:])
            do {
                try await context.onDisk("sync", "download's folder") { try file.syncData() }
            } catch {
                syncFailure = error
                throw error
            }
            // Without those that were discarded during the sync.
            try await context.store.confirmChunks(
                chunks, partials: syncingPartials, answer: answer, of: context.lease)
            try await noteConfirmed(chunks)
        }
    }

    private func noteConfirmed(_ chunks: [ConfirmedChunk]) async throws {
        for chunk in chunks {
            confirmed.insert(chunk.index)
            wholeFile?.turns.accept(stepAt: Int64(chunk.index) * download.chunkSize)
            window.recordSuccess()
            try await context.keeper.noteProgress(chunk: chunk.index)
        }
        wholeFile?.follow(upTo: contiguousByteCount)
    }

    /// Confirmed bytes from the start of the file, up to the first gap.
    private var contiguousByteCount: Int64 {
        min(Int64(confirmed.contiguousCount) * download.chunkSize, download.expectedSize ?? 0)
    }
}
