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

    /// - Throws: ``RunInterruption/sourceChanged`` if the chunk had other bytes earlier in this
    ///   run.
    private func noteReading(of chunk: PreparedChunk) throws(RunInterruption) {
        let earlier = sentDigests.updateValue(chunk.digest, forKey: chunk.index)
        guard earlier == nil || earlier == chunk.digest else { throw .sourceChanged(nil) }
    }

    /// Sends one chunk until the server has it, in as many requests as the link requires.
    private func deliver(_ chunk: PreparedChunk) async throws {
        var state = ChunkSendState(
            chunk.range, start: partials.removeValue(forKey: chunk.index) ?? 0, bodySize: bodySize,
            takesParts: takesPartialBodies, isUnproven: unproven.contains(chunk.index))
        var latest = LatestReply.missing
        var event: ChunkSendState.Event? = .start
        while let current = event {
            event = nil
            for action in state.handle(current) {
                event = try await perform(action, on: chunk, &latest)
            }
        }
    }

    /// - Returns: The result, if the chunk's state depends on it.
    private func perform(
        _ action: ChunkSendState.Action, on chunk: PreparedChunk, _ latest: inout LatestReply
    ) async throws -> ChunkSendState.Event? {
        let coordinator = context.coordinator
        switch action {
        case .send(let part, let asksFirst):
            return try await send(chunk, part, asksFirst: asksFirst, &latest)
        case .requestStatus:
            return .status(try await chunkStatus(of: chunk.index))
        case .wait(let isReachable):
            try await coordinator.backOff(
                after: latest.failure, chunk: chunk.index, isReachable: isReachable)
        case .verifySource:
            try await source.verifyUnchanged()
        case .recordMismatch(let actual):
            let mismatch = DigestMismatch(
                chunk: chunk.index, expectedSha256: chunk.digest, actualSha256: actual)
            try await context.store.recordMismatch(mismatch, of: context.lease)
        case .noteProgress:
            try await coordinator.noteProgress(chunk: chunk.index)
        case .noteAnswer:
            try await coordinator.noteAnswer()
        case .adoptBodySize(let size):
            bodySize = size
        case .confirm(let tries):
            try await confirm(chunk, tries: tries, latest.answer)
        case .giveUp(let reason):
            throw error(for: reason, after: latest.failure)
        }
        return nil
    }

    private func error(
        for reason: ChunkSendState.Reason, after failure: RequestFailure
    ) -> any Error {
        switch reason {
        case .canceled: CancellationError()
        case .sessionGone: sessionGone(failure)
        case .sessionClosed: UploadTrouble(remedy: .reconcile, failure: failure)
        case .sourceChanged: RunInterruption.sourceChanged(nil)
        case .otherBytes: UploadTrouble(remedy: .fromScratch, failure: failure)
        case .bodyRefused(let byteCount): failure.refusing(byteCount)
        case .permanentFailure: failure
        }
    }

    private func send(
        _ chunk: PreparedChunk, _ part: ByteRange, asksFirst: Bool, _ latest: inout LatestReply
    ) async throws -> ChunkSendState.Event {
        try Task.checkCancellation()
        let sent = SentByteCount()
        let began = context.environment.now()
        do {
            let reply = try await put(chunk, part, asksFirst: asksFirst, counting: sent)
            let duration = context.environment.now().duration(since: began)
            if let contradiction = Self.contradiction(in: reply, to: chunk, part) {
                latest = .failed(contradiction)
                return .contradicted(
                    ChunkSendState.Failure(contradiction, sentByteCount: sent.count),
                    duration: duration)
            }
            latest = .answered(reply.answer)
            return switch reply.value {
            case .whole: .stored(duration: duration)
            case .part(let received):
                .accepted(byteCount: received.receivedBytes, duration: duration)
            }
        } catch let failure as RequestFailure {
            if failure.isCongestion { window.recordCongestion() }
            latest = .failed(failure)
            return .failed(ChunkSendState.Failure(failure, sentByteCount: sent.count))
        }
    }

    private func put(
        _ chunk: PreparedChunk, _ part: ByteRange, asksFirst: Bool, counting sent: SentByteCount
    ) async throws -> ServerAPI.Answered<ServerAPI.ChunkAnswer> {
        guard let session = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let countRate = context.rate.cumulativeCounter()
        let start = chunk.range.start
        return try await api.putChunk(
            chunk.index, of: session,
            bytes: ByteRange(start: start + part.start, end: start + part.end),
            total: upload.identity.byteCount, digest: chunk.digest, body: chunk.body(part),
            asksFirst: asksFirst,
            onBytesSent: { count in
                sent.set(count)
                countRate(count)
            })
    }

    /// Returns the failure for an answer that acknowledges anything else than the request's bytes:
    /// `CHUNK_CONFLICT` for another digest, `PROTOCOL_VIOLATION` for another range.
    private static func contradiction(
        in reply: ServerAPI.Answered<ServerAPI.ChunkAnswer>, to chunk: PreparedChunk,
        _ part: ByteRange
    ) -> RequestFailure? {
        switch reply.value {
        case .whole(let receipt):
            guard receipt.sha256 != chunk.digest else { return nil }
            return RequestFailure(.chunkConflict, operation: "put chunk", answer: reply.answer)
        case .part(let received):
            let isExpected =
                received.index == chunk.index && received.receivedBytes >= part.end
                && received.receivedBytes < chunk.range.byteCount
            guard !isExpected else { return nil }
            return RequestFailure(.protocolViolation, operation: "put chunk", answer: reply.answer)
        }
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

/// The result of a chunk's latest request.
private enum LatestReply {
    case missing
    case answered(ServerAnswer)
    case failed(RequestFailure)

    var answer: ServerAnswer? {
        switch self {
        case .missing: nil
        case .answered(let answer): answer
        case .failed(let failure): failure.answer
        }
    }

    /// - Precondition: The request failed.
    var failure: RequestFailure {
        guard case .failed(let failure) = self else {
            preconditionFailure("a chunk waits and gives up only after a failed request")
        }
        return failure
    }
}
