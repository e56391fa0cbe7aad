internal import KedgeModel
internal import Logging

extension UploadWorker {
    /// Limit of consecutive "still at work" answers without progress.
    private static let maxIdlePolls = 120

    /// Finalizes the session and compares the whole-file hashes.
    ///
    /// - Returns: False if the server misses chunks. They are then known and have to be sent.
    func finalize() async throws -> Bool {
        guard let session = upload.sessionID else { throw trouble(.reconcile, .sessionNotFound) }
        let digest = try await wholeFile.digest(ofFile: upload.identity.byteCount)
        try await source.verifyUnchanged()
        try await recordIdentity()
        try await recordFileHash(digest)
        do {
            let finished = try await pollFinalize(session, digest: digest)
            let file = finished.file
            guard file.fileHashSha256 == digest, file.size == upload.identity.byteCount else {
                var problem = ProblemDocument(code: .integrityMismatch)
                problem.actualSha256 = file.fileHashSha256
                throw UploadTrouble(
                    remedy: .fromScratch,
                    failure: RequestFailure(
                        .integrityMismatch, operation: "finalize", answer: finished.answer,
                        problem: problem))
            }
            try await context.store.completeUpload(
                file, answer: finished.answer, of: context.lease)
            return true
        } catch let failure as RequestFailure {
            switch failure.code {
            case .missingChunks:
                try await reconcile()
                return false
            case .sessionNotFound, .sessionExpired:
                throw sessionGone(failure)
            case .sessionClosed:
                throw UploadTrouble(remedy: .reconcile, failure: failure)
            case .integrityMismatch, .sizeMismatch:
                throw UploadTrouble(remedy: .fromScratch, failure: failure)
            default:
                throw failure
            }
        }
    }

    private func pollFinalize(
        _ session: SessionID, digest: SHA256Digest
    ) async throws -> (file: FinalizeResponse, answer: ServerAnswer) {
        let api = api
        let surfaced: Set<ErrorCode> = [
            .missingChunks, .sessionNotFound, .sessionExpired, .sessionClosed,
            .integrityMismatch, .sizeMismatch,
        ]
        var verifiedBytes: Int64 = -1
        var idlePollCount = 0
        while true {
            let answered = try await context.coordinator.retrying(surfacing: surfaced) {
                try await api.finalize(session, digest: digest)
            }
            switch answered.value {
            case .done(let file):
                return (file, answered.answer)
            case .pending(let bytes, let wait):
                idlePollCount = bytes > verifiedBytes ? 0 : idlePollCount + 1
                verifiedBytes = max(verifiedBytes, bytes)
                guard idlePollCount < Self.maxIdlePolls else {
                    throw RequestFailure(
                        .unavailable, operation: "finalize", answer: answered.answer)
                }
                try await context.environment.sleep(min(wait, .seconds(30)))
            }
        }
    }

    /// Records that the server has other bytes than the client read, and the digests if known.
    ///
    /// - Returns: The number of integrity failures so far.
    /// - Throws: ``RunInterruption/sourceChanged`` if a change of the file may explain it.
    func recordOtherBytes(_ failure: RequestFailure) async throws -> Int {
        var mismatch: DigestMismatch?
        if let actual = failure.problem?.actualSha256, let expected = upload.fileHash,
            failure.code == .integrityMismatch
        {
            mismatch = DigestMismatch(chunk: nil, expectedSha256: expected, actualSha256: actual)
        }
        return try await recordIntegrityFailure(
            failure, mismatch: mismatch,
            facts: [
                "session": "\(upload.sessionID?.text ?? "-")",
                "server": "\(failure.problem?.actualSha256?.hex ?? "-")",
                "chunks": "\(confirmed.ranges)",
            ])
    }
}
