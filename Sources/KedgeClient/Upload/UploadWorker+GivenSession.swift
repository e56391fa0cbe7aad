internal import KedgeModel
internal import Logging

/// Continuing a session that the user named. The record knows nothing about it, so the file is
/// first compared with the server's digests.
extension UploadWorker {
    /// Compares the file with everything that the server received, then adopts the session. Nothing
    /// is changed on the server.
    ///
    /// - Throws: `TransferError` with `SESSION_FILE_MISMATCH`; ``RequestFailure``, also for a
    ///   session that is unknown, expired or closed; ``SourceTouched``;
    ///   ``RunInterruption/sourceChanged``.
    func takeUpSession(_ id: SessionID) async throws {
        let (status, answer) = try await givenStatus(id)
        try adoptShape(of: status, answer)
        let digests = try await compare(with: status, answer)
        try await source.verifyUnchanged()
        try await context.store.takeUpSession(
            status, digests: digests, answer: answer, of: context.lease)
        upload.sessionID = id
        upload.expiresAt = status.expiresAt
        isSessionOpen = status.state == .open
        // A session that takes no more chunks only has to be finalized.
        confirmed = isSessionOpen ? ChunkSet(digests.keys) : ChunkSet(0..<chunkCount)
        partials = partials(of: status)
        takesPartialBodies = status.limits?.partialBodies == true
        isInDoubt = false
        try await recordIdentity()
    }

    private var chunkCount: Int { upload.layout.chunkCount ?? 0 }

    private func givenStatus(_ id: SessionID) async throws -> (SessionStatus, ServerAnswer) {
        let api = api
        let answered: ServerAPI.Answered<SessionStatus>
        do {
            answered = try await context.coordinator.retrying { try await api.sessionDigests(id) }
        } catch let failure as RequestFailure where failure.code == .badRequest {
            guard failure.problem != nil else { throw failure }
            throw TransferError(
                .badRequest, operation: "take up session",
                explanation: "The server does not report the digests of a session's chunks, so the"
                    + " file cannot be compared with it. Use a newer server, or upload"
                    + " without naming a session.", cause: failure)
        }
        switch answered.value.state {
        case .open, .finalizing, .completed: return (answered.value, answered.answer)
        case .failed, .canceled: throw refusal(.sessionClosed, answered.answer)
        case .expired: throw refusal(.sessionExpired, answered.answer)
        }
    }

    /// Adopts the session's chunk size, if the file sizes match.
    private func adoptShape(of status: SessionStatus, _ answer: ServerAnswer) throws {
        let size = upload.identity.byteCount
        guard status.fileSize == size else {
            let known = status.fileSize.map { "is \($0) bytes" } ?? "is unknown"
            throw mismatch("its size \(known), and this one has \(size)")
        }
        guard let count = Self.chunkCount(ofFile: size, chunkSize: status.chunkSize),
            status.totalChunks == count
        else { throw refusal(.protocolViolation, answer) }
        upload.chunkSize = status.chunkSize
        adoptSessionShape()
    }

    /// Compares the received chunks and the first bytes of unfinished chunks with the file.
    ///
    /// - Returns: The digests of the received chunks.
    private func compare(
        with status: SessionStatus, _ answer: ServerAnswer
    ) async throws -> [Int: SHA256Digest] {
        restartHash()
        var digests: [Int: SHA256Digest] = [:]
        if status.state == .open {
            digests = try received(of: status, answer)
            try await compare(digests)
            for partial in status.partialChunks { try await compare(partial, answer) }
        }
        if let declared = status.fileHashSha256 {
            let digest = try await wholeFile.digest(ofFile: upload.identity.byteCount)
            guard digest == declared else { throw mismatch("its SHA-256 differs") }
        } else if status.state != .open {
            throw refusal(.protocolViolation, answer)
        }
        return digests
    }

    private func received(
        of status: SessionStatus, _ answer: ServerAnswer
    ) throws -> [Int: SHA256Digest] {
        let (indexes, digests) = (status.receivedChunks, status.receivedDigests ?? [])
        guard indexes.count == digests.count, indexes.allSatisfy({ $0 < chunkCount }) else {
            throw refusal(.protocolViolation, answer)
        }
        return Dictionary(zip(indexes, digests)) { first, _ in first }
    }

    private func compare(_ digests: [Int: SHA256Digest]) async throws {
        // In order, so that the whole-file hash advances with the chunks.
        for (index, digest) in digests.sorted(by: { $0.key < $1.key }) {
            try Task.checkCancellation()
            guard let range = upload.layout.range(ofChunk: index) else { continue }
            let chunk = try await source.prepare(index, range: range, feeding: wholeFile)
            guard chunk.digest == digest else { throw mismatch("chunk \(index) differs") }
        }
    }

    private func compare(_ partial: PartialChunk, _ answer: ServerAnswer) async throws {
        guard let range = upload.layout.range(ofChunk: partial.index),
            (1..<range.byteCount).contains(partial.receivedBytes), let digest = partial.sha256
        else { throw refusal(.protocolViolation, answer) }
        let begin = ByteRange(start: range.start, end: range.start + partial.receivedBytes)
        guard try await source.digest(of: begin) == digest else {
            throw mismatch("chunk \(partial.index) begins with other bytes")
        }
    }

    private func mismatch(_ reason: String) -> TransferError {
        TransferError(
            .sessionFileMismatch, operation: "take up session",
            explanation: "The upload session was begun with another file: \(reason)."
                + " Nothing on the server was changed.")
    }

    private func refusal(_ code: ErrorCode, _ answer: ServerAnswer) -> RequestFailure {
        RequestFailure(code, operation: "take up session", answer: answer)
    }
}
