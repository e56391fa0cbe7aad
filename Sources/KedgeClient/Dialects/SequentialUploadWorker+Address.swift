internal import KedgeModel

/// Codes by which a server says that an upload is not there any more.
private let goneCodes: Set<ErrorCode> = [.sessionNotFound, .sessionExpired]

extension SequentialUploadWorker {
    /// The upload at the server, and how far it has come; a new one where there is none.
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

    /// True for a refusal that takes nothing back: the server's last word was that it has all bytes, and
    /// what answers at the address now may be anything.
    func leavesWhole(_ error: any Error) -> Bool {
        guard isTakenWhole else { return false }
        return switch error {
        case let failure as RequestFailure: failure.answer != nil && !failure.isOutage
        // Redirects that lead nowhere.
        case let error as TransferError: error.code == .protocolViolation
        default: false
        }
    }

    private func createUpload() async throws -> (UploadAddress, UploadState) {
        try refuseTooLarge()
        let description = UploadDescription(
            fileName: upload.fileName, mimeType: upload.mimeType, byteCount: size,
            digest: upload.fileHash)
        let door = door
        // Nothing is at stake yet: a person names the right address.
        let created = try await context.keeper.retrying(surfacing: [.redirected]) {
            try await door.create(description)
        }
        // Before its bytes move: from here on a kill costs none of them.
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
        adopt(state.offer)
        try refuseTooLarge()
        try validate(state)
        isTakenWhole = state.isComplete && state.offset == size
        return (created.address, state)
    }

    /// Asks an upload that was just begun, whose server may not know the protocol at all.
    ///
    /// - Throws: `UPLOAD_VERSION_UNSUPPORTED` when there is no upload at the address.
    private func firstState(at address: UploadAddress) async throws -> UploadState {
        do {
            return try await stateAtServer(address, surfacing: [.protocolViolation, .redirected])
        } catch let failure as RequestFailure
            where failure.answer != nil
            && ([.protocolViolation, .redirected].contains(failure.code) || !failure.isRetryable)
        {
            // What is no upload is not gone on with later either.
            try await forgetUpload(keepsHash: true)
            throw ResumableUploadDoor.unsupported(failure.operation)
        }
    }

    private func refuseTooLarge() throws {
        guard let most = offer.maxSize, size > most else { return }
        throw TransferError(
            .fileTooLarge, operation: "create upload",
            explanation: "The server takes files of at most \(most) bytes.")
    }

    /// Asks the server, whose word is checked and written down.
    ///
    /// - Parameter surfacing: Codes of answers that are thrown at once, besides those by which an upload is
    ///   gone.
    /// - Throws: `SIZE_MISMATCH` for a state that no upload of this file can have.
    func stateAtServer(
        _ address: UploadAddress, surfacing: Set<ErrorCode> = []
    ) async throws -> UploadState {
        let door = door
        while true {
            var surfaced = goneCodes.union(surfacing).union([.methodNotAllowed])
            // Where the upload was, its server may have put what became of it.
            if isTakenWhole { surfaced.formUnion([.protocolViolation, .redirected]) }
            let state = try await context.keeper.retrying(surfacing: surfaced, chunk: chunk) {
                try await door.state(of: address)
            }
            try validate(state)
            // To have all is not to be finished, in the IETF drafts.
            isTakenWhole = state.isComplete && state.offset == size
            adopt(state.offer)
            let isLost = state.offset < acknowledged
            try await note(state)
            guard isLost else { return state }
            // The server lost what it had acknowledged. It is given that again, but not for ever.
            try await context.keeper.backOff(
                after: RequestFailure(
                    .offsetMismatch, operation: "upload status", answer: state.answer),
                chunk: chunk, isReachable: true)
        }
    }

    /// - Throws: `SIZE_MISMATCH`.
    func validate(_ state: UploadState) throws {
        let explanation: String
        if state.offset > size {
            explanation = "The server says that it has more bytes than the file."
        } else if let told = state.byteCount, told != size {
            explanation = "The upload at the server is of another size than the file."
        } else if state.isComplete, state.offset < size {
            explanation = "The server ended the upload before all bytes were there."
        } else {
            return
        }
        throw TransferError(
            .sizeMismatch, operation: "upload status",
            resource: upload.uploadURL.map { URLText.redacted($0) },
            explanation: explanation,
            cause: RequestFailure(.sizeMismatch, operation: "upload status", answer: state.answer))
    }

    /// Writes down how far the server has come, when that is news.
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
            (mismatchCount, refusalCount, cutShortCount, touchCount) = (0, 0, 0, 0)
            try await context.keeper.noteProgress(chunk: index)
        }
    }

    static func isGone(_ failure: RequestFailure) -> Bool {
        goneCodes.contains(failure.code) && failure.answer != nil
    }

    func trouble(_ failure: RequestFailure) -> UploadTrouble {
        UploadTrouble(remedy: .newUpload, failure: failure)
    }

    /// Prepares the record for the next round of ``run()``, or of a later run.
    ///
    /// - Throws: ``SourceChanged``; `INTEGRITY_MISMATCH` the second time: after the first it starts over by
    ///   itself, after that a person decides (R79, R119).
    func recover(from trouble: UploadTrouble) async throws {
        guard trouble.remedy == .fromScratch else { return try await forgetUpload(keepsHash: true) }
        let count = try await recordIntegrityFailure(trouble.failure)
        // Best effort: an upload left behind expires by itself.
        if offer.offersRemoval, let address = upload.address { try? await door.remove(address) }
        // Before the end, too: what was not trusted now must not be later.
        try await forgetUpload(keepsHash: false)
        guard count > 1 else { return }
        throw TransferError(
            .integrityMismatch, operation: trouble.failure.operation,
            explanation: "The server received other bytes than this file has, twice.",
            cause: trouble.failure)
    }

    private func forgetUpload(keepsHash: Bool) async throws {
        try await context.store.resetForNewUpload(keepsHash: keepsHash, of: context.lease)
        upload.uploadURL = nil
        upload.interopVersion = nil
        (furthest, acknowledged, isTakenWhole) = (0, 0, false)
        if !keepsHash {
            wholeFile.stop()
            wholeFile = PrefixHash(file: file, saved: nil, environment: context.environment)
            upload.fileHash = nil
        }
    }
}

extension UploadTransfer {
    /// Where the upload is; nil before it was begun.
    var address: UploadAddress? {
        uploadURL.map { UploadAddress(url: $0, interopVersion: interopVersion) }
    }
}

extension ChunkLayout {
    /// The chunks that end at or before an offset.
    func wholeChunks(before offset: Int64) -> ChunkSet {
        let count = offset == fileSize ? chunkCount ?? 0 : Int(offset / chunkSize)
        return ChunkSet(0..<count)
    }
}
