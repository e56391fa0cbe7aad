internal import KedgeModel

extension SequentialUploadWorker {
    /// Completes the transfer and records whether the server's digest verifies it.
    func complete(_ state: UploadState) async throws {
        let isBehind = wholeFile.saved.offsetBytes < size
        let digest = try await wholeFile.digest(ofFile: size)
        // Without this check, the hash may cover other bytes than those sent.
        if isBehind {
            try await source.verifyUntouched()
        } else if hasReadUnseen {
            try await source.verifyUnchanged()
        }
        try await recordFileHash(digest)
        if let reportedDigest = state.reportedFile.digest, reportedDigest != digest {
            throw UploadTrouble(
                remedy: .fromScratch,
                failure: RequestFailure(
                    .integrityMismatch, operation: "complete upload", answer: state.answer))
        }
        try await context.store.completeUpload(
            digest: digest, file: state.reportedFile.file,
            verification: state.reportedFile.digest == nil ? .unverified : .sha256,
            answer: state.answer, of: context.lease)
    }

    /// Requests the state once more, because some servers report the digest only now. An upload
    /// that the server no longer knows remains complete, unless a later answer contradicted that.
    func confirmed(
        _ last: UploadState, at address: UploadAddress
    ) async throws -> UploadState {
        do {
            var state = try await stateAtServer(address)
            if state.reportedFile.digest == nil { state.reportedFile = last.reportedFile }
            return state
        } catch let error where leavesWhole(error) {
            return last
        } catch let failure as RequestFailure where Self.isGone(failure) {
            throw trouble(failure)
        }
    }
}
