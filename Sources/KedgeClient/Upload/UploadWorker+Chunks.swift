internal import KedgeModel

extension UploadWorker {
    /// Sends the missing chunks, several at a time.
    ///
    /// One loop reads the file in order, so that each byte is read once for the chunk's hash, the
    /// whole-file hash and the request. The loop waits while the window is full.
    func sendMissingChunks() async throws {
        let layout = upload.layout
        let missing = confirmed.missingRanges(of: layout.chunkCount ?? 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            var inFlightCount = 0
            for index in missing.joined() {
                while inFlightCount >= window.limit {
                    try await group.next()
                    inFlightCount -= 1
                }
                guard let range = layout.range(ofChunk: index) else { continue }
                let chunk = try await source.prepare(index, range: range, feeding: wholeFile)
                try noteReading(of: chunk)
                group.addTask { try await self.deliver(chunk) }
                inFlightCount += 1
            }
            try await group.waitForAll()
        }
    }

    /// - Throws: ``SourceChanged`` if the chunk had other bytes earlier in this run.
    private func noteReading(of chunk: PreparedChunk) throws {
        let earlier = sentDigests.updateValue(chunk.digest, forKey: chunk.index)
        guard earlier == nil || earlier == chunk.digest else { throw SourceChanged(current: nil) }
    }

    /// Sends one chunk until the server has it, in as many parts as the link requires.
    private func deliver(_ chunk: PreparedChunk) async throws {
        var attempt = ChunkAttempt(
            start: partials.removeValue(forKey: chunk.index) ?? 0, pieces: pieces)
        attempt.isRepeated = unproven.contains(chunk.index)
        while true {
            try Task.checkCancellation()
            let part = attempt.nextPart(
                ofChunk: chunk.range.byteCount, takesParts: takesPartialBodies)
            let sent = SentByteCount()
            let began = context.environment.now()
            do {
                let reply = try await put(
                    chunk, part, asksFirst: attempt.isRepeated, counting: sent)
                let duration = context.environment.now().duration(since: began)
                attempt.pieces.recordSuccess(in: duration, byteCount: part.byteCount)
                switch reply.value {
                case .whole(let receipt):
                    guard receipt.sha256 == chunk.digest else {
                        throw RequestFailure(
                            .chunkConflict, operation: "put chunk", answer: reply.answer)
                    }
                    pieces = attempt.pieces
                    return try await confirm(chunk, tries: attempt.uncountedTries, reply.answer)
                case .part(let received):
                    try await goOn(chunk, after: part, received, reply.answer, &attempt)
                }
            } catch let failure as RequestFailure {
                if failure.isCongestion { window.recordCongestion() }
                attempt.isRepeated = true
                let failed = FailedPut(failure: failure, part: part, sentByteCount: sent.count)
                guard try await prepareNextTry(of: chunk, after: failed, &attempt) else { continue }
                if unproven.contains(chunk.index) {
                    // The server has a chunk; only a receipt proves that it is this one.
                    try await context.coordinator.backOff(
                        after: failure, chunk: chunk.index, isReachable: true)
                    continue
                }
                return try await confirm(chunk, tries: attempt.uncountedTries, failure.answer)
            }
        }
    }

    private func put(
        _ chunk: PreparedChunk, _ part: ByteRange, asksFirst: Bool, counting sent: SentByteCount
    ) async throws -> ServerAPI.Answered<ServerAPI.ChunkAnswer> {
        guard let session = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let countRate = context.rate.cumulativeCounter()
        let start = chunk.range.start
        return try await context.api.putChunk(
            chunk.index, of: session,
            bytes: ByteRange(start: start + part.start, end: start + part.end),
            total: upload.identity.byteCount, digest: chunk.digest, body: chunk.body(part),
            asksFirst: asksFirst,
            onBytesSent: { count in
                sent.set(count)
                countRate(count)
            })
    }

    /// Continues after a part of the chunk that the server acknowledged as durable.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` for an answer that acknowledges anything else.
    private func goOn(
        _ chunk: PreparedChunk, after part: ByteRange, _ received: PartialChunk,
        _ answer: ServerAnswer, _ attempt: inout ChunkAttempt
    ) async throws {
        guard received.index == chunk.index, received.receivedBytes >= part.end,
            received.receivedBytes < chunk.range.byteCount
        else {
            throw RequestFailure(.protocolViolation, operation: "put chunk", answer: answer)
        }
        _ = try await apply(.partial(received.receivedBytes), of: chunk, to: &attempt)
        attempt.isRepeated = false
    }

    /// Records the chunk as confirmed, durably.
    private func confirm(
        _ chunk: PreparedChunk, tries: Int, _ answer: ServerAnswer?
    ) async throws {
        try await context.store.confirmChunk(
            chunk.index, endOffset: chunk.range.end, digest: chunk.digest,
            // A saved hash would later count as proof for the unproven chunks.
            hash: unproven.isEmpty ? wholeFile.saved : nil,
            attempts: tries, answer: answer, of: context.lease)
        confirmed.insert(chunk.index)
        unproven.remove(chunk.index)
        sentDigests[chunk.index] = nil
        touchCount = 0
        window.recordSuccess()
        try await context.coordinator.noteProgress(chunk: chunk.index)
    }
}
