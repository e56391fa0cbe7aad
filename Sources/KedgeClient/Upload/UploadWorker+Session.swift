internal import KedgeModel

/// Codes by which a server says that a session is not there any more.
private let goneCodes: Set<ErrorCode> = [.sessionNotFound, .sessionExpired]

extension UploadWorker {
    /// Makes sure that there is a session and that both sides agree on what it has (R73, R74).
    func establishSession() async throws {
        if upload.sessionID != nil {
            try await reconcile()
        } else if let given = upload.givenSessionID {
            try await takeUpSession(given)
        } else {
            try await createSession()
        }
    }

    private func createSession() async throws {
        let request = CreateSessionRequest(
            fileName: upload.fileName, fileSize: upload.identity.byteCount,
            mimeType: upload.mimeType, chunkSize: upload.chunkSize,
            fileHashSha256: upload.fileHash, adoptSessionId: upload.adoptSessionID)
        let (api, key) = (context.api, upload.idempotencyKey)
        let session: ServerAPI.Answered<CreateSessionResponse>
        do {
            session = try await context.keeper.retrying(
                surfacing: goneCodes.union([.idempotencyConflict])
            ) {
                let session = try await api.createSession(request, idempotencyKey: key)
                try Self.validate(session.value, for: request, answer: session.answer)
                return session
            }
        } catch let failure as RequestFailure
            where [.idempotencyConflict, .sessionExpired].contains(failure.code)
            || (goneCodes.contains(failure.code) && upload.adoptSessionID != nil)
        {
            // The old session cannot be taken over, or the key was spent, perhaps on a session whose
            // answer was lost and whose time is over since: a plain new one then.
            throw SessionTrouble(remedy: .newSession(adopt: nil), failure: failure)
        }
        let response = session.value
        try await context.store.attachSession(response, answer: session.answer, to: context.lease)
        upload.sessionID = response.sessionId
        if upload.chunkSize != response.chunkSize { (unproven, sentDigests) = ([], [:]) }
        upload.chunkSize = response.chunkSize
        upload.expiresAt = response.expiresAt
        upload.maxConcurrentChunks = max(1, response.limits.maxConcurrentChunks)
        takesPartialBodies = response.limits.partialBodies == true
        confirmed = ChunkSet()
        partials = [:]
        isSessionOpen = true
        adoptSessionShape()
        // A replayed answer or an adoption: the session has bytes, or has gone on, already.
        if response.receivedBytes > 0 || response.state != .open { try await reconcile() }
    }

    private static func validate(
        _ session: CreateSessionResponse, for request: CreateSessionRequest, answer: ServerAnswer
    ) throws {
        guard session.fileSize == request.fileSize,
            let chunkCount = chunkCount(ofFile: request.fileSize, chunkSize: session.chunkSize),
            session.totalChunks == chunkCount
        else {
            throw RequestFailure(.protocolViolation, operation: "create session", answer: answer)
        }
    }

    /// Number of chunks; nil for a chunk size that no file of this size can have.
    static func chunkCount(ofFile fileSize: Int64, chunkSize: Int64) -> Int? {
        guard chunkSize > 0, fileSize / chunkSize <= Int64(ChunkLayout.maxChunkCount),
            let count = ChunkLayout(fileSize: fileSize, chunkSize: chunkSize).chunkCount,
            count <= ChunkLayout.maxChunkCount
        else { return nil }
        return count
    }

    /// Asks the server what it has; its word wins both ways (R62).
    func reconcile() async throws {
        let (status, answer) = try await sessionStatus()
        switch status.state {
        case .open:
            confirmed = chunks(of: status)
            for index in unproven { confirmed.remove(index) }
        case .finalizing, .completed:
            // Everything arrived; finalize gives the answer that was lost.
            confirmed = ChunkSet(0..<(upload.layout.chunkCount ?? 0))
        case .failed, .canceled:
            throw trouble(.newSession(adopt: nil), .sessionClosed)
        case .expired:
            throw trouble(.newSession(adopt: upload.sessionID), .sessionExpired)
        }
        isSessionOpen = status.state == .open
        takesPartialBodies = status.limits?.partialBodies == true
        partials = partials(of: status)
        try await context.store.reconcile(
            received: confirmed, expiresAt: status.expiresAt, chunkSize: upload.chunkSize,
            answer: answer, of: context.lease)
    }

    /// Where one chunk stands on the server, asked after a connection broke under it, so that no byte
    /// that it acknowledged is sent again.
    ///
    /// Only adds to what is known: answers to chunks in flight may be newer than this one.
    func standing(of index: Int) async throws -> ChunkStanding {
        let (status, _) = try await sessionStatus(forChunk: index)
        let received = chunks(of: status)
        if received.contains(index) { return .received }
        if status.state == .completed || status.state == .finalizing { return .received }
        guard status.state == .open else { throw trouble(.reconcile, .sessionClosed) }
        return .partial(partials(of: status)[index] ?? 0)
    }

    /// - Parameter index: The chunk that it is asked for, which a failure is charged to.
    private func sessionStatus(
        forChunk index: Int? = nil
    ) async throws -> (SessionStatus, ServerAnswer) {
        guard let id = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let (api, size, chunkSize) = (context.api, upload.identity.byteCount, upload.chunkSize)
        let chunkCount = upload.layout.chunkCount ?? 0
        do {
            let answered = try await context.keeper.retrying(
                surfacing: goneCodes, chunk: index
            ) {
                let answered = try await api.sessionStatus(id, chunkCount: chunkCount)
                let status = answered.value
                // Frozen for the session. Before anything is computed with it: it may be any number.
                guard status.fileSize != size || status.chunkSize == chunkSize
                else {
                    throw RequestFailure(
                        .protocolViolation, operation: "session status", answer: answered.answer)
                }
                return answered
            }
            guard answered.value.fileSize == size else {
                throw trouble(.newSession(adopt: nil), .sizeMismatch)
            }
            return (answered.value, answered.answer)
        } catch let failure as RequestFailure where goneCodes.contains(failure.code) {
            throw sessionGone(failure)
        }
    }

    /// The session is not there any more; an expired one may still be taken over (R75, R129).
    func sessionGone(_ failure: RequestFailure) -> SessionTrouble {
        let adopt = failure.code == .sessionExpired ? upload.sessionID : nil
        return SessionTrouble(remedy: .newSession(adopt: adopt), failure: failure)
    }

    func trouble(_ remedy: SessionTrouble.Remedy, _ code: ErrorCode) -> SessionTrouble {
        SessionTrouble(remedy: remedy, failure: RequestFailure(code, operation: "session"))
    }

    /// Prepares the record for the next round of ``run()``, or of a later run.
    ///
    /// - Throws: ``SourceChanged``; `INTEGRITY_MISMATCH` the second time that the server has other bytes:
    ///   after the first the upload starts over by itself, after that a person decides (R79, R110, R119).
    func recover(from trouble: SessionTrouble) async throws {
        if case .reconcile = trouble.remedy { return }
        // The person named this session and no other, and it is theirs to give up.
        guard upload.givenSessionID == nil else { throw trouble.failure }
        let adopt: SessionID?
        let keepsHash: Bool
        var integrityFailureCount = 0
        switch trouble.remedy {
        case .reconcile:
            return
        case .newSession(let session):
            (adopt, keepsHash) = (session, true)
        case .fromScratch:
            // Here and not where it was noticed: several chunks may notice one damage.
            integrityFailureCount = try await recordIntegrityFailure(trouble.failure)
            (adopt, keepsHash) = (nil, false)
            if let session = upload.sessionID {
                // Also the last time: nobody goes on with it. Best effort: a session left behind expires
                // by itself.
                try? await context.api.deleteSession(session)
            }
        }
        var generator = context.environment.makeGenerator()
        let key = TransferID.random(using: &generator).text
        try await context.store.resetForNewSession(
            adopt: adopt, idempotencyKey: key, keepsHash: keepsHash, of: context.lease)
        upload.sessionID = nil
        upload.adoptSessionID = adopt
        upload.idempotencyKey = key
        confirmed = ChunkSet()
        partials = [:]
        if adopt == nil { (unproven, sentDigests) = ([], [:]) }
        if !keepsHash {
            wholeFile.stop()
            wholeFile = PrefixHash(
                file: file, saved: nil, environment: context.environment)
            upload.fileHash = nil
        }
        guard integrityFailureCount > 1 else { return }
        throw TransferError(
            .integrityMismatch, operation: trouble.failure.operation,
            explanation: "The server received other bytes than this file has, twice.",
            cause: trouble.failure)
    }

    /// Chunks that an answer names, as far as the file has them.
    func chunks(of status: SessionStatus) -> ChunkSet {
        let chunkCount = upload.layout.chunkCount ?? 0
        return ChunkSet(status.receivedChunks.filter { (0..<chunkCount).contains($0) })
    }

    func partials(of status: SessionStatus) -> [Int: Int64] {
        var partials: [Int: Int64] = [:]
        for partial in status.partialChunks {
            guard let range = upload.layout.range(ofChunk: partial.index),
                (1..<range.byteCount).contains(partial.receivedBytes)
            else { continue }
            partials[partial.index] = partial.receivedBytes
        }
        return partials
    }
}

/// Where a chunk stands on the server.
enum ChunkStanding: Sendable, Equatable {
    case received
    /// The server keeps this many bytes from the start of the chunk; zero for none.
    case partial(Int64)
}
