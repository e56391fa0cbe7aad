internal import KedgeModel

extension UploadWorker {
    /// Ensures that there is a session and that both sides agree on its chunks.
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
        let metadata = upload.sentMetadata
        let request = CreateSessionRequest(
            fileName: upload.fileName, fileSize: upload.identity.byteCount,
            mimeType: upload.mimeType, chunkSize: upload.chunkSize,
            fileHashSha256: upload.fileHash,
            metadata: metadata.isEmpty ? nil : metadata,
            // A link creates uploads, but does not permit to adopt others.
            adoptSessionId: upload.link == nil ? upload.adoptSessionID : nil)
        let (api, key) = (context.api, upload.idempotencyKey)
        let offersStoredFiles = reusesStoredFiles
        let session: ServerAPI.Answered<CreateSessionResponse>
        do {
            session = try await context.coordinator.retrying(
                surfacing: UploadTrouble.goneCodes.union([.idempotencyConflict])
            ) {
                let session = try await api.createSession(
                    request, idempotencyKey: key, offersStoredFiles: offersStoredFiles)
                try Self.validate(session.value, for: request, answer: session.answer)
                return session
            }
        } catch let failure as RequestFailure
            where [.idempotencyConflict, .sessionExpired].contains(failure.code)
            || (UploadTrouble.goneCodes.contains(failure.code) && upload.adoptSessionID != nil)
        {
            // The old session cannot be adopted, or the idempotency key was used. The latter
            // happens if the answer was lost and that session has expired. Create a new one.
            throw UploadTrouble(remedy: .newUpload(adopt: nil), failure: failure)
        }
        let response = session.value
        try await context.store.attachSession(response, answer: session.answer, to: context.lease)
        upload.sessionID = response.sessionId
        upload.sessionLink = response.uploadLink.flatMap { ServiceLink.text(of: $0) }
        if upload.chunkSize != response.chunkSize { (unproven, sentDigests) = ([], [:]) }
        upload.chunkSize = response.chunkSize
        upload.expiresAt = response.expiresAt
        upload.maxConcurrentChunks = max(1, response.limits.maxConcurrentChunks)
        takesPartialBodies = response.limits.partialBodies == true
        storedFiles = response.storedFiles ?? []
        confirmed = ChunkSet()
        partials = [:]
        isSessionOpen = true
        adoptSessionShape()
        // After a replayed answer or an adoption, the session may have bytes or be finalized.
        if response.receivedBytes > 0 || response.state != .open { try await reconcile() }
    }

    /// Whether bytes that the server has may be used. A session that the user named is filled, and
    /// a link does not permit to read other files.
    private var reusesStoredFiles: Bool {
        !upload.sendsAllBytes && upload.givenSessionID == nil && upload.link == nil
            && upload.identity.byteCount > 0
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

    /// Returns the number of chunks; nil for a chunk size that is invalid for this file size.
    static func chunkCount(ofFile fileSize: Int64, chunkSize: Int64) -> Int? {
        guard chunkSize > 0, fileSize / chunkSize <= Int64(ChunkLayout.maxChunkCount),
            let count = ChunkLayout(fileSize: fileSize, chunkSize: chunkSize).chunkCount,
            count <= ChunkLayout.maxChunkCount
        else { return nil }
        return count
    }

    /// Adopts the server's state, which is authoritative even if it has fewer chunks.
    func reconcile() async throws {
        // Only while nothing was confirmed: the comparison may have been interrupted.
        let offersStoredFiles = reusesStoredFiles && upload.uploadedChunks.count == 0
        let (status, answer) = try await sessionStatus(offersStoredFiles: offersStoredFiles)
        switch status.state {
        case .open:
            confirmed = chunks(of: status)
            for index in unproven { confirmed.remove(index) }
        case .finalizing, .completed:
            // Everything arrived: finalize repeats the answer that was lost.
            confirmed = ChunkSet(0..<(upload.layout.chunkCount ?? 0))
        case .failed, .canceled:
            throw trouble(.newUpload(adopt: nil), .sessionClosed)
        case .expired:
            throw trouble(.newUpload(adopt: upload.sessionID), .sessionExpired)
        }
        isSessionOpen = status.state == .open
        takesPartialBodies = status.limits?.partialBodies == true
        partials = partials(of: status)
        storedFiles = status.storedFiles ?? []
        try await context.store.reconcile(
            received: confirmed, expiresAt: status.expiresAt, chunkSize: upload.chunkSize,
            answer: answer, of: context.lease)
    }

    /// Requests the state of one chunk after its connection broke, so that no acknowledged byte is
    /// sent again.
    ///
    /// Only adds to the known state, because answers to chunks in flight may be newer.
    func chunkStatus(of index: Int) async throws -> ChunkStatus {
        let (status, _) = try await sessionStatus(forChunk: index)
        let received = chunks(of: status)
        if received.contains(index) { return .received }
        if status.state == .completed || status.state == .finalizing { return .received }
        guard status.state == .open else { throw trouble(.reconcile, .sessionClosed) }
        return .partial(partials(of: status)[index] ?? 0)
    }

    /// - Parameter index: Chunk to which failures are charged.
    private func sessionStatus(
        forChunk index: Int? = nil, offersStoredFiles: Bool = false
    ) async throws -> (SessionStatus, ServerAnswer) {
        guard let id = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let (api, size, chunkSize) = (api, upload.identity.byteCount, upload.chunkSize)
        let chunkCount = upload.layout.chunkCount ?? 0
        do {
            let answered = try await context.coordinator.retrying(
                surfacing: UploadTrouble.goneCodes, chunk: index
            ) {
                let answered = try await api.sessionStatus(
                    id, chunkCount: chunkCount, storedFiles: offersStoredFiles ? .any : nil)
                let status = answered.value
                // Frozen for the session. Checked before any computation: it may be any number.
                guard status.fileSize != size || status.chunkSize == chunkSize
                else {
                    throw RequestFailure(
                        .protocolViolation, operation: "session status", answer: answered.answer)
                }
                return answered
            }
            guard answered.value.fileSize == size else {
                throw trouble(.newUpload(adopt: nil), .sizeMismatch)
            }
            return (answered.value, answered.answer)
        } catch let failure as RequestFailure where UploadTrouble.goneCodes.contains(failure.code) {
            throw sessionGone(failure)
        }
    }

    /// Returns the trouble for a session that no longer exists. An expired one may still be
    /// adopted.
    func sessionGone(_ failure: RequestFailure) -> UploadTrouble {
        let adopt = failure.code == .sessionExpired ? upload.sessionID : nil
        return UploadTrouble(remedy: .newUpload(adopt: adopt), failure: failure)
    }

    func trouble(_ remedy: UploadTrouble.Remedy, _ code: ErrorCode) -> UploadTrouble {
        UploadTrouble(remedy: remedy, failure: RequestFailure(code, operation: "session"))
    }

    /// Prepares the record for the next round of ``run()``, or for a later run.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``; `INTEGRITY_MISMATCH` the second time that the
    ///   server has other bytes. The upload restarts by itself only once; then the user decides.
    func recover(from trouble: UploadTrouble) async throws {
        if case .reconcile = trouble.remedy { return }
        // The user named this session, so only the user may give it up.
        guard upload.givenSessionID == nil else { throw trouble.failure }
        let adopt: SessionID?
        let keepsHash: Bool
        var integrityFailureCount = 0
        switch trouble.remedy {
        case .reconcile:
            return
        case .newUpload(let session):
            (adopt, keepsHash) = (session, true)
        case .fromScratch:
            // Counted here, because several chunks may notice the same damage.
            integrityFailureCount = try await recordOtherBytes(trouble.failure)
            (adopt, keepsHash) = (nil, false)
            if let session = upload.sessionID {
                // Also the last time, because no run will continue it. Best effort: an abandoned
                // session expires by itself.
                try? await api.deleteSession(session)
            }
        }
        var generator = context.environment.makeGenerator()
        let key = TransferID.random(using: &generator).text
        try await context.store.resetForNewSession(
            adopt: adopt, idempotencyKey: key, keepsHash: keepsHash, of: context.lease)
        (upload.sessionID, upload.sessionLink) = (nil, nil)
        upload.adoptSessionID = adopt
        upload.idempotencyKey = key
        confirmed = ChunkSet()
        partials = [:]
        if adopt == nil { (unproven, sentDigests) = ([], [:]) }
        if !keepsHash { discardHashes() }
        guard integrityFailureCount > 1 else { return }
        throw trouble.repeatedMismatch
    }

    /// Returns the chunks in an answer that exist in the file.
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
