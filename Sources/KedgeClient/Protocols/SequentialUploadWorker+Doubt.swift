internal import KedgeModel
internal import Logging

/// Comparison of a file of which only the ctime differs; see ``UploadWorker/compareSource()``.
extension SequentialUploadWorker {
    /// Adopts the identity of a touched file, whose bytes are compared before more are sent.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` for a file that is touched repeatedly.
    func doubt(_ touched: SourceTouched) throws(RunInterruption) {
        try adoptIdentity(of: touched)
        source = Self.makeSource(upload, file: file, bodySize: sendState.bodySize, context: context)
    }

    /// Compares the acknowledged bytes with the hash state that was saved before they were sent.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` if the file is different or cannot be proven to
    ///   be the same; ``SourceTouched``.
    func compareSource(upTo offset: Int64) async throws {
        guard isInDoubt else { return }
        context.logger.notice(
            "comparing modified source", metadata: ["transfer": "\(context.lease.id)"])
        let saved = wholeFile.saved
        restartHash()
        if offset > 0 {
            guard saved.offsetBytes >= offset else {
                throw RunInterruption.sourceChanged(upload.identity)
            }
            _ = try await wholeFile.digest(ofFile: saved.offsetBytes)
            guard wholeFile.saved == saved else {
                throw RunInterruption.sourceChanged(upload.identity)
            }
            try await source.verifyUnchanged()
        }
        isInDoubt = false
        try await context.store.acceptSource(
            upload.identity, hash: wholeFile.saved, of: context.lease)
    }
}
