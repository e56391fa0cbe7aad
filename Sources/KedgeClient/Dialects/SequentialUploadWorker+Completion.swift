internal import KedgeModel
internal import Logging

extension SequentialUploadWorker {
    /// The server has the file; says honestly how sure that is.
    func complete(_ state: UploadState) async throws {
        let isBehind = wholeFile.saved.offsetBytes < size
        let digest = try await wholeFile.digest(ofFile: size)
        // Otherwise the hash may be of other bytes than those that were sent.
        if isBehind {
            try await source.verifyUntouched()
        } else if hasReadUnseen {
            try await source.verifyUnchanged()
        }
        if upload.fileHash != digest {
            try await context.store.setFileHash(digest, of: context.lease)
            upload.fileHash = digest
        }
        if let told = state.evidence.digest, told != digest {
            throw UploadTrouble(
                remedy: .fromScratch,
                failure: RequestFailure(
                    .integrityMismatch, operation: "complete upload", answer: state.answer))
        }
        try await context.store.completeUpload(
            digest: digest, file: state.evidence.file,
            verification: state.evidence.digest == nil ? .unverified : .sha256,
            answer: state.answer, of: context.lease)
    }

    /// Asks once more: some servers tell of the file only now. One that does not know the upload any more
    /// has acknowledged all of it before, unless it said otherwise since.
    func confirmed(
        _ last: UploadState, at address: UploadAddress
    ) async throws -> UploadState {
        do {
            var state = try await stateAtServer(address)
            if state.evidence.digest == nil { state.evidence = last.evidence }
            return state
        } catch let error where leavesWhole(error) {
            return last
        } catch let failure as RequestFailure where Self.isGone(failure) {
            throw trouble(failure)
        }
    }

    /// The server has other bytes than we read; see ``UploadWorker/recordIntegrityFailure(_:)``.
    ///
    /// - Returns: How often by now.
    /// - Throws: ``SourceChanged`` when the file explains it.
    func recordIntegrityFailure(_ failure: RequestFailure) async throws -> Int {
        try await source.verifyUntouched()
        context.logger.error(
            "integrity mismatch",
            metadata: [
                "transfer": "\(context.lease.id)", "code": "\(failure.code.rawValue)",
                "computed": "\(upload.fileHash?.hex ?? "-")",
                "error": "\(String(reflecting: failure))",
            ])
        return try await context.store.recordIntegrityFailure(
            context.lease, message: "The server has other bytes than this file; starting over.",
            answer: failure.answer)
    }
}
