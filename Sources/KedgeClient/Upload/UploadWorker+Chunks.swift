internal import KedgeModel
internal import Synchronization

extension UploadWorker {
    /// Sends what the server does not have, several chunks at a time (R76, R126).
    ///
    /// One loop reads the file in order, so that each byte is read once for its chunk's hash, for the
    /// whole file's hash and for sending; it reads on only when a place in the window is free.
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

    /// - Throws: ``SourceChanged`` when the chunk was read with other bytes before in this run.
    private func noteReading(of chunk: PreparedChunk) throws {
        let earlier = sentDigests.updateValue(chunk.digest, forKey: chunk.index)
        guard earlier == nil || earlier == chunk.digest else { throw SourceChanged(current: nil) }
    }

    /// Sends one chunk until the server has it.
    private func deliver(_ chunk: PreparedChunk) async throws {
        var attempt = ChunkAttempt(start: partials.removeValue(forKey: chunk.index) ?? 0)
        attempt.isRepeated = unproven.contains(chunk.index)
        let sentByteCount = SentByteCount()
        while true {
            try Task.checkCancellation()
            do {
                sentByteCount.set(0)
                let receipt = try await put(
                    chunk, from: attempt.start, isRepeated: attempt.isRepeated,
                    counting: sentByteCount)
                guard receipt.value.sha256 == chunk.digest else {
                    throw RequestFailure(
                        .chunkConflict, operation: "put chunk", answer: receipt.answer)
                }
                return try await confirm(chunk, tries: attempt.uncountedTries, receipt.answer)
            } catch let failure as RequestFailure {
                if failure.isCongestion { window.recordCongestion() }
                attempt.isRepeated = true
                let sentCount = sentByteCount.count
                if try await prepareNextTry(
                    of: chunk, after: failure, sentByteCount: sentCount, &attempt)
                {
                    if unproven.contains(chunk.index) {
                        // That the server has it is known. Whether it is this one, only a receipt says.
                        try await context.keeper.backOff(
                            after: failure, chunk: chunk.index, isReachable: true)
                        continue
                    }
                    return try await confirm(
                        chunk, tries: attempt.uncountedTries, failure.answer)
                }
            }
        }
    }

    private func put(
        _ chunk: PreparedChunk, from start: Int64, isRepeated: Bool,
        counting sentByteCount: SentByteCount
    ) async throws -> ServerAPI.Answered<ChunkReceipt> {
        guard let session = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let countRate = context.rate.cumulativeCounter()
        return try await context.api.putChunk(
            chunk.index, of: session,
            bytes: ByteRange(start: chunk.range.start + start, end: chunk.range.end),
            total: upload.identity.byteCount, digest: chunk.digest, body: chunk.body(from: start),
            asksFirst: isRepeated,
            onBytesSent: { sent in
                sentByteCount.set(sent)
                countRate(sent)
            })
    }

    /// One bit, durable at once (R77).
    private func confirm(
        _ chunk: PreparedChunk, tries: Int, _ answer: ServerAnswer?
    ) async throws {
        try await context.store.confirmChunk(
            chunk.index, endOffset: chunk.range.end, digest: chunk.digest,
            // It would prove chunks of which it is not known that the server has these bytes.
            hash: unproven.isEmpty ? wholeFile.saved : nil,
            attempts: tries, answer: answer, of: context.lease)
        confirmed.insert(chunk.index)
        unproven.remove(chunk.index)
        sentDigests[chunk.index] = nil
        touchCount = 0
        window.recordSuccess()
        try await context.keeper.noteProgress(chunk: chunk.index)
    }

    /// Decides from where to send next, and waits as long as it must.
    ///
    /// - Returns: True when the server has the chunk after all.
    private func prepareNextTry(
        of chunk: PreparedChunk, after failure: RequestFailure, sentByteCount: Int64,
        _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        if failure.isCanceled { throw CancellationError() }
        if failure.transport?.kind == .bodyUnreadable { try await source.verifyUnchanged() }
        switch failure.code {
        case .sessionNotFound, .sessionExpired:
            throw sessionGone(failure)
        case .sessionClosed:
            throw SessionTrouble(remedy: .reconcile, failure: failure)
        case .chunkConflict:
            // The server has other bytes for this index: usually because the file changed (R123).
            try await source.verifyUnchanged()
            if unproven.contains(chunk.index) { throw SourceChanged(current: nil) }
            throw SessionTrouble(remedy: .fromScratch, failure: failure)
        case .chunkHashMismatch:
            // The server dropped what it had of this chunk; nothing else is lost (R16).
            attempt.start = 0
            attempt.mismatchCount += 1
            if let actual = failure.problem?.actualSha256 {
                let mismatch = DigestMismatch(
                    chunk: chunk.index, expectedSha256: chunk.digest, actualSha256: actual)
                try await context.store.recordMismatch(mismatch, of: context.lease)
            }
            if attempt.mismatchCount >= 3 { try await source.verifyUnchanged() }
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
            return false
        case .offsetMismatch:
            return try await continueAtExpectedOffset(of: chunk, after: failure, &attempt)
        default:
            break
        }
        guard failure.isInterrupted else {
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
            // Nothing was taken where nobody served: no need to ask.
            if failure.isOutage { return false }
            return try await apply(standing(of: chunk.index), of: chunk, to: &attempt) == .done
        }
        guard failure.isRetryable else { throw failure }
        if sentByteCount < chunk.range.byteCount - attempt.start {
            // The chunk cannot be complete. A status asked for now would be answered before the
            // server has saved what it just received; the next try asks where to go on instead.
            if sentByteCount > 0, !attempt.hasAskedAtOnce {
                attempt.hasAskedAtOnce = true
                return false
            }
            try await context.keeper.backOff(after: failure, chunk: chunk.index)
            if failure.isOutage, sentByteCount == 0 { return false }
            // A proxy in between may answer `Expect` itself; then only the status tells.
            return try await apply(standing(of: chunk.index), of: chunk, to: &attempt) == .done
        }
        let outcome = try await apply(standing(of: chunk.index), of: chunk, to: &attempt)
        if outcome == .nothingNew {
            try await context.keeper.backOff(
                after: failure, chunk: chunk.index, isReachable: true)
        }
        return outcome == .done
    }

    /// The server named the byte it expects; usually more arrived than the last answer could say.
    private func continueAtExpectedOffset(
        of chunk: PreparedChunk, after failure: RequestFailure, _ attempt: inout ChunkAttempt
    ) async throws -> Bool {
        let standing: ChunkStanding
        // Compared before anything is computed with it: it may be any number.
        if let expected = failure.problem?.expectedOffset,
            (chunk.range.start..<chunk.range.end).contains(expected)
        {
            standing = .partial(expected - chunk.range.start)
        } else {
            standing = try await self.standing(of: chunk.index)
        }
        let outcome = try await apply(standing, of: chunk, to: &attempt)
        if outcome == .nothingNew {
            // To be told where to go on is no failure, unless it leads nowhere again and again.
            attempt.idleAnswerCount += 1
            if attempt.idleAnswerCount > 2 {
                try await context.keeper.backOff(after: failure, chunk: chunk.index)
            }
        }
        return outcome == .done
    }

    private enum Outcome {
        case done
        case furtherAlong
        case nothingNew
    }

    private func apply(
        _ standing: ChunkStanding, of chunk: PreparedChunk, to attempt: inout ChunkAttempt
    ) async throws -> Outcome {
        switch standing {
        case .received:
            return .done
        case .partial(let byteCount):
            attempt.start = byteCount
            guard byteCount > attempt.furthest else { return .nothingNew }
            attempt.furthest = byteCount
            attempt.idleAnswerCount = 0
            attempt.hasAskedAtOnce = false
            attempt.uncountedTries += 1
            try await context.keeper.noteProgress(chunk: chunk.index)
            return .furtherAlong
        }
    }
}

/// Bytes of one request's body that were handed to the connection; told by the transport's thread.
private final class SentByteCount: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}

/// Where sending one chunk stands.
private struct ChunkAttempt {
    /// First byte to send next, counted from the start of the chunk.
    var start: Int64
    /// Tries that the retry keeper has not counted: this one, and those that got the chunk further.
    var uncountedTries = 1
    var mismatchCount = 0
    /// The furthest start so far: only what lies beyond it is progress.
    var furthest: Int64
    /// Answers in a row that named another start without getting the chunk further.
    var idleAnswerCount = 0
    /// True from the second try on: the server may know better where to go on, and is asked before
    /// bytes are sent.
    var isRepeated = false
    /// True after one try without a wait since the last progress.
    var hasAskedAtOnce = false

    init(start: Int64) {
        self.start = start
        self.furthest = start
    }
}
