internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

extension DownloadWorker {
    /// Memory per chunk in flight: a write buffer, bytes that the transport holds before it pauses,
    /// and bytes that libcurl could not hand over.
    private static let bufferByteCount: Int64 = 3 << 20
    /// Limit of fetches of a chunk that arrives with the same wrong digest each time.
    static let maxFetchCount = 3

    /// Fetches the missing chunks, several at a time.
    func fetchMissingChunks(into temp: TempFile, hash: FileHasher) async throws {
        guard let layout = download.layout else { return }
        window = ConcurrencyWindow(
            wish: context.configuration.connections, serverLimit: nil,
            bufferByteCount: Self.bufferByteCount,
            budgetByteCount: WorkerContext.bufferBudgetByteCount)
        // Reads the bytes of an earlier run while the rest arrives.
        hash.readBack(upTo: contiguousByteCount)
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

    /// Fetches one chunk until it is complete, verified and durable. An interrupted chunk resumes
    /// where it stopped, also in a later run.
    private func fetch(
        _ index: Int, range: ByteRange, into temp: TempFile, hash: FileHasher
    ) async throws {
        // A chunk that an earlier run began has no step, so no other chunk should wait for it.
        if partials[index] == nil { hash.fileHashing.enter(range.start, end: range.end) }
        defer { hash.fileHashing.leave(at: range.start) }
        let fileHashStep = FileHashStep(
            in: hash.fileHashing, at: range.start, limits: context.environment.hashStepLimits,
            sleep: context.environment.pause)
        var chunk = try await takeUp(index, range: range, fileHashStep: fileHashStep, from: temp)
        do {
            while try await !advance(&chunk, into: temp, hash: hash) {}
        } catch {
            // A sync error here must not replace the error that ends the run.
            try? await makeDurable(&chunk)
            throw error
        }
    }

    /// Makes one try at the missing bytes of a chunk.
    ///
    /// - Returns: True when the chunk is complete.
    private func advance(
        _ chunk: inout ChunkFetch, into temp: TempFile, hash: FileHasher
    ) async throws -> Bool {
        try Task.checkCancellation()
        let before = chunk.progress.byteCount
        do {
            // An earlier run may have stopped after the last byte.
            let answer = chunk.isWhole ? nil : try await fetchPart(of: &chunk, into: temp)
            try await check(&chunk, answer: answer)
            if let file = chunk.progress.file {
                hash.fileHashing.propose(file.after, from: file.before)
            }
            let confirmed = ConfirmedChunk(
                index: chunk.index, endOffset: chunk.range.end, attempts: chunk.uncountedTries)
            try await confirm(confirmed, answer: answer)
            return true
        } catch let failure as RequestFailure {
            if failure.isCongestion { window.recordCongestion() }
            if failure.isCanceled { throw CancellationError() }
            guard failure.isRetryable else { throw failure }
            let brought = chunk.progress.byteCount > before
            if failure.code == .chunkHashMismatch || failure.code == .protocolViolation && brought {
                // The received bytes are in doubt: only this chunk is fetched again.
                try await discard(&chunk)
            }
            if failure.code == .chunkHashMismatch { try refuseHopeless(chunk, failure) }
            if chunk.progress.byteCount > before {
                chunk.uncountedTries += 1
                try await note(&chunk)
                try await context.coordinator.noteProgress(chunk: chunk.index)
            } else {
                // Syncs first, because the wait may be long.
                try await makeDurable(&chunk)
                try await backOff(after: failure, chunk: chunk.index)
            }
            return false
        }
    }

    /// Waits before the next try.
    ///
    /// Content may come from another host than the service, such as a bucket. After an invalid
    /// answer, this first waits until the service itself answers.
    func backOff(after failure: RequestFailure, chunk: Int?) async throws {
        let isWrong = [.notKedge, .protocolViolation, .redirected].contains(failure.code)
        guard isWrong, failure.answer != nil, case .file(let id) = download.reference else {
            return try await context.coordinator.backOff(after: failure, chunk: chunk)
        }
        let api = context.api
        _ = try await context.coordinator.retrying(chunk: chunk ?? 0) { try await api.fileMeta(id) }
        try await context.coordinator.backOff(after: failure, chunk: chunk, isReachable: true)
    }

    /// Throws if the chunk keeps arriving with the same wrong bytes. A link that damages bytes
    /// damages different ones each time, so another fetch helps. Equal ones are the origin's.
    private func refuseHopeless(_ chunk: ChunkFetch, _ failure: RequestFailure) throws {
        guard chunk.sameDigestCount >= Self.maxFetchCount else { return }
        let last = chunk.range.end - 1
        throw TransferError(
            .chunkHashMismatch, operation: "get file",
            explanation: "Chunk \(chunk.index) (bytes \(chunk.range.start) to \(last)) arrived"
                + " \(chunk.sameDigestCount) times with the same bytes, which do not match the"
                + " SHA-256 that the server announced.",
            cause: failure)
    }

    private func check(_ chunk: inout ChunkFetch, answer: ServerAnswer?) async throws {
        let (index, digest) = (chunk.index, chunk.progress.chunk.digest())
        guard let digests = remote.chunkDigests, digests.indices.contains(index),
            digests[index] != digest
        else { return }
        chunk.noteWrong(digest)
        try await context.store.recordMismatch(
            DigestMismatch(chunk: index, expectedSha256: digests[index], actualSha256: digest),
            of: context.lease)
        throw RequestFailure(.chunkHashMismatch, operation: "get file", answer: answer)
    }

    /// Requests the missing bytes of a chunk and writes them, up to the first failure.
    ///
    /// - Parameter chunk: Its progress includes every byte written, also when this throws.
    private func fetchPart(
        of chunk: inout ChunkFetch, into temp: TempFile
    ) async throws -> ServerAnswer {
        let overlap = try await overlap(before: &chunk, in: temp)
        let missing = chunk.missing
        let asked = ByteRange(start: missing.start - overlap.byteCount, end: missing.end)
        let (total, validator) = (download.expectedSize ?? 0, download.validator ?? .weak(""))
        let response = try await fetcher.get(remote.url, range: asked, validator: validator)
        let answer = fetcher.answer(of: response)
        try await context.coordinator.noteAnswer()
        switch RangeResponseCheck(
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
            // An intermediary may code an answer now and then. The server does so if a chunk gets
            // two such answers before any byte of the file has arrived.
            if !hasProgress, chunk.progress.byteCount == 0,
                let failure = fetcher.codingFailure(of: response)
            {
                chunk.codedAnswerCount += 1
                if chunk.codedAnswerCount > 1 { throw failure }
            }
            throw RequestFailure(.protocolViolation, operation: "get file", answer: answer)
        case .refused:
            throw await fetcher.failure(of: response, to: download.reference)
        }
        var writer = BodyWriter(
            file: temp.file, start: chunk.range.start, progress: chunk.progress,
            fileHashStep: chunk.fileHashStep, began: chunk.began, buffers: buffers,
            context: context)
        let trouble: RequestFailure?
        do {
            trouble = try await receive(
                response.body, after: overlap, of: &chunk, into: &writer, answer: answer)
        } catch {
            chunk.progress = writer.progress
            throw error
        }
        chunk.progress = writer.progress
        if let trouble { throw trouble }
        return answer
    }

    /// Writes a body of exactly the missing bytes, and records them as they arrive.
    ///
    /// - Returns: The network failure, after every byte that arrived was written.
    /// - Throws: Errors of the disk and the store; ``DownloadRestart`` for another version.
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
            // A connection that ends after the last byte lost nothing.
            if receivedCount < byteCount {
                trouble = RequestFailure(error, operation: "get file", answer: answer)
            }
        }
        chunk.noteArrival(of: receivedCount, overlapping: knownByteCount)
        try await writer.flush()
        return trouble
    }

    /// Makes a complete chunk durable: syncs, then sets its bit. Chunks that complete during a sync
    /// share the next one.
    ///
    /// After a failed sync, this run confirms no further chunk. The kernel may have marked earlier
    /// writes as clean, including those of chunks that complete later (fsync(2)).
    private func confirm(_ chunk: ConfirmedChunk, answer: ServerAnswer?) async throws {
        unsynced.append(chunk)
        try await syncWaiting(answer: answer)
    }

    /// Syncs the file, then records the waiting chunks and partials. Returns at once if another
    /// task is already doing so.
    func syncWaiting(answer: ServerAnswer?) async throws {
        if let syncFailure { throw syncFailure }
        guard !isSyncing, let file = temp?.file else { return }
        isSyncing = true
        defer { isSyncing = false }
        while !unsynced.isEmpty || !unsyncedPartials.isEmpty {
            let chunks = unsynced
            (unsynced, syncingPartials, unsyncedPartials) = ([], unsyncedPartials, [:])
            do {
                try await context.onDisk("sync", .downloadFolder) { try file.syncData() }
            } catch {
                syncFailure = error
                throw error
            }
            // Partials discarded during the sync are no longer in `syncingPartials`.
            try await context.store.confirmChunks(
                chunks, partials: syncingPartials, answer: answer, of: context.lease)
            try await noteConfirmed(chunks)
        }
    }

    private func noteConfirmed(_ chunks: [ConfirmedChunk]) async throws {
        for chunk in chunks {
            confirmed.insert(chunk.index)
            wholeFile?.fileHashing.accept(stepAt: Int64(chunk.index) * download.chunkSize)
            window.recordSuccess()
            try await context.coordinator.noteProgress(chunk: chunk.index)
        }
        wholeFile?.readBack(upTo: contiguousByteCount)
    }

    /// Number of confirmed bytes from the start of the file, up to the first gap.
    private var contiguousByteCount: Int64 {
        min(Int64(confirmed.contiguousCount) * download.chunkSize, download.expectedSize ?? 0)
    }
}
