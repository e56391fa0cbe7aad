internal import KedgeModel
internal import KedgeTransport

extension SequentialUploadWorker {
    /// Returns the upload and its state at the server; creates an upload if there is none.
    func establishUpload() async throws -> (UploadAddress, UploadState) {
        guard let address = upload.address else { return try await createUpload() }
        do {
            return (address, try await stateAtServer(address))
        } catch let error where leavesWhole(error) {
            let answer = (error as? RequestFailure)?.answer
            return (address, UploadState(offset: size, isComplete: true, answer: answer))
        } catch let failure as RequestFailure where Self.isGone(failure) {
            throw trouble(failure)
        }
    }

    /// Whether a refusal leaves the upload complete: the server has acknowledged all bytes, and
    /// afterwards its URL may answer in any way.
    func leavesWhole(_ error: any Error) -> Bool {
        guard isTakenWhole else { return false }
        return switch error {
        case let failure as RequestFailure: failure.answer != nil && !failure.isOutage
        // Redirects without a usable target.
        case let error as TransferError: error.code == .protocolViolation
        default: false
        }
    }

    private func createUpload() async throws -> (UploadAddress, UploadState) {
        try refuseTooLarge()
        let description = UploadDescription(
            fileName: upload.fileName, mimeType: upload.mimeType, byteCount: size,
            digest: upload.fileHash, metadata: upload.sentMetadata)
        let client = client
        // Nothing was sent yet: the user can correct the URL.
        let created = try await context.coordinator.retrying(surfacing: [.redirected]) {
            try await client.create(description)
        }
        // Recorded before any bytes move, so that a kill loses none of them.
        try await context.store.attachUpload(
            created.address, expiresAt: created.state?.expiresAt, answer: created.state?.answer,
            to: context.lease)
        upload.uploadURL = created.address.url
        upload.interopVersion = created.address.interopVersion
        (furthest, acknowledged, isTakenWhole) = (0, 0, false)
        guard let state = created.state else {
            let state = try await firstState(at: created.address)
            try refuseTooLarge()
            return (created.address, state)
        }
        adopt(state.capabilities)
        try refuseTooLarge()
        try validate(state)
        isTakenWhole = state.isComplete && state.offset == size
        return (created.address, state)
    }

    /// Requests the state of a new upload, whose server may not know the protocol.
    ///
    /// - Throws: `UPLOAD_VERSION_UNSUPPORTED` if there is no upload at the URL.
    private func firstState(at address: UploadAddress) async throws -> UploadState {
        do {
            return try await stateAtServer(address, surfacing: [.protocolViolation, .redirected])
        } catch let failure as RequestFailure
            where failure.answer != nil
            && ([.protocolViolation, .redirected].contains(failure.code) || !failure.isRetryable)
        {
            // The URL has no upload: a later run must not use it either.
            try await resetForNewUpload(keepsHash: true)
            throw ResumableUploadClient.unsupported(failure.operation)
        }
    }

    private func refuseTooLarge() throws {
        guard let most = capabilities.maxSize, size > most else { return }
        throw TransferError(
            .fileTooLarge, operation: "create upload",
            explanation: "The server accepts files of at most \(most) bytes.")
    }

    /// Requests the server's state, validates it and records it.
    ///
    /// - Parameter surfacing: Further codes of answers that are thrown at once.
    /// - Throws: `SIZE_MISMATCH` for a state that is impossible for this file.
    func stateAtServer(
        _ address: UploadAddress, surfacing: Set<ErrorCode> = []
    ) async throws -> UploadState {
        let client = client
        while true {
            var surfaced = UploadTrouble.goneCodes.union(surfacing).union([.methodNotAllowed])
            // After completion, the URL may lead to the resource made from the upload.
            if isTakenWhole { surfaced.formUnion([.protocolViolation, .redirected]) }
            let state = try await context.coordinator.retrying(surfacing: surfaced, chunk: chunk) {
                try await client.state(of: address)
            }
            try validate(state)
            // In the IETF drafts, an upload with all its bytes is not necessarily complete.
            isTakenWhole = state.isComplete && state.offset == size
            adopt(state.capabilities)
            let isLost = state.offset < acknowledged
            try await note(state)
            guard isLost else { return state }
            // The server lost acknowledged bytes. They are sent again, within the retry budget.
            try await context.coordinator.backOff(
                after: RequestFailure(
                    .offsetMismatch, operation: "upload status", answer: state.answer),
                chunk: chunk, isReachable: true)
        }
    }

    /// - Throws: `SIZE_MISMATCH`.
    func validate(_ state: UploadState) throws {
        let explanation: String
        if state.offset > size {
            explanation = "The server reports more bytes than the file has."
        } else if let reportedSize = state.byteCount, reportedSize != size {
            explanation = "The upload on the server has another size than the file."
        } else if state.isComplete, state.offset < size {
            explanation = "The server completed the upload before it had all bytes."
        } else {
            return
        }
        throw TransferError(
            .sizeMismatch, operation: "upload status",
            resource: upload.uploadURL.map { URLText.redacted($0) },
            explanation: explanation,
            cause: RequestFailure(.sizeMismatch, operation: "upload status", answer: state.answer))
    }

    /// Records the acknowledged offset if it has changed.
    func note(_ state: UploadState) async throws {
        guard state.offset != acknowledged else { return }
        let isProgress = state.offset > furthest
        try await context.store.recordOffset(
            state.offset, chunks: upload.layout.wholeChunks(before: state.offset),
            hash: wholeFile.saved, expiresAt: state.expiresAt,
            attempts: uncountedTries, ofChunk: chunk, answer: state.answer, of: context.lease)
        uncountedTries = 0
        let index = chunk
        acknowledged = state.offset
        furthest = max(furthest, state.offset)
        if isProgress {
            sendState.recordProgress()
            touchCount = 0
            try await context.coordinator.noteProgress(chunk: index)
        }
    }

    static func isGone(_ failure: RequestFailure) -> Bool {
        UploadTrouble.goneCodes.contains(failure.code) && failure.answer != nil
    }

    func trouble(_ failure: RequestFailure) -> UploadTrouble {
        UploadTrouble(remedy: .newUpload(adopt: nil), failure: failure)
    }

    /// Prepares the record for the next round of ``run()``, or for a later run.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``; `INTEGRITY_MISMATCH` the second time. The
    ///   upload restarts by itself only once; then the user decides.
    func recover(from trouble: UploadTrouble) async throws {
        guard trouble.remedy == .fromScratch else {
            return try await resetForNewUpload(keepsHash: true)
        }
        let count = try await recordIntegrityFailure(trouble.failure)
        // Best effort: an abandoned upload expires by itself.
        if capabilities.offersRemoval, let address = upload.address {
            try? await client.remove(address)
        }
        // Also before giving up: a later run must not trust these bytes either.
        try await resetForNewUpload(keepsHash: false)
        guard count > 1 else { return }
        throw trouble.repeatedMismatch
    }

    private func resetForNewUpload(keepsHash: Bool) async throws {
        try await context.store.resetForNewUpload(keepsHash: keepsHash, of: context.lease)
        upload.uploadURL = nil
        upload.interopVersion = nil
        (furthest, acknowledged, isTakenWhole) = (0, 0, false)
        if !keepsHash { discardHashes() }
    }
}

extension UploadTransfer {
    /// Address of the upload; nil before it is created.
    var address: UploadAddress? {
        uploadURL.map { UploadAddress(url: $0, interopVersion: interopVersion) }
    }
}

extension ChunkLayout {
    /// Returns the chunks that end at or before an offset.
    func wholeChunks(before offset: Int64) -> ChunkSet {
        let count = offset == fileSize ? chunkCount ?? 0 : Int(offset / chunkSize)
        return ChunkSet(0..<count)
    }
}
