internal import KedgeModel
internal import Logging

/// Comparison of a file of which only the ctime differs. A change of mode and a hard link look like
/// an edit whose modification time was set back.
extension UploadWorker {
    /// Adopts the identity of a touched file, whose bytes are compared before more are sent.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` for a file that is touched repeatedly.
    func doubt(_ touched: SourceTouched) throws(RunInterruption) {
        try adoptIdentity(of: touched)
        isIdentityRecorded = false
        adoptSessionShape()
    }

    /// Compares the confirmed chunks with the digests that were computed when they were sent.
    ///
    /// The digest of a chunk is unknown if the answer was lost or an older version sent it. The
    /// saved hash proves such a chunk as far as that hash reaches. Any other is offered to the
    /// server again, which compares digests before it accepts a byte.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` if the file is different; ``SourceTouched``.
    func compareSource() async throws {
        guard isInDoubt else { return }
        context.logger.notice(
            "comparing modified source", metadata: ["transfer": "\(context.lease.id)"])
        let known = try await context.store.chunkDigests(of: context.lease.id)
            .merging(sentDigests) { $1 }
        let saved = wholeFile.saved
        restartHash()
        let hasUnknown = confirmed.indexes.contains { known[$0] == nil }
        if hasUnknown, saved.offsetBytes > 0 {
            _ = try await wholeFile.digest(ofFile: saved.offsetBytes)
            guard wholeFile.saved == saved else {
                throw RunInterruption.sourceChanged(upload.identity)
            }
        }
        let provenEnd = hasUnknown ? saved.offsetBytes : 0
        for index in confirmed.indexes {
            try Task.checkCancellation()
            guard let range = upload.layout.range(ofChunk: index) else { continue }
            guard let digest = known[index] else {
                // In a session that takes no more chunks, the whole-file hash is the proof.
                if range.end > provenEnd, isSessionOpen { unproven.insert(index) }
                continue
            }
            let chunk = try await source.prepare(index, range: range, feeding: wholeFile)
            guard chunk.digest == digest else {
                throw RunInterruption.sourceChanged(upload.identity)
            }
        }
        try await source.verifyUnchanged()
        for index in unproven { confirmed.remove(index) }
        isInDoubt = false
        try await recordIdentity()
    }

    /// Records the file's identity once every chunk on the server is proven.
    func recordIdentity() async throws {
        guard !isIdentityRecorded, !isInDoubt, unproven.isEmpty else { return }
        try await context.store.acceptSource(
            upload.identity, hash: wholeFile.saved, of: context.lease)
        isIdentityRecorded = true
    }
}
