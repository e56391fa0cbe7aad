internal import KedgeModel
internal import Logging

/// What is done when only the file's time of change differs: a change of mode and a hard link look like
/// an edit whose modification time was set back.
extension UploadWorker {
    /// Changes of attributes without a confirmed chunk in between that are followed up.
    private static let maxTouchCount = 8

    /// The file was touched: from here on it is held against what it is now, and compared before more is
    /// sent.
    ///
    /// - Throws: ``SourceChanged`` for a file that is touched all the time.
    func doubt(_ touched: SourceTouched) throws {
        touchCount += 1
        guard touchCount <= Self.maxTouchCount else {
            throw SourceChanged(current: touched.current)
        }
        upload.identity = touched.current
        upload.fileHash = nil
        (isInDoubt, isIdentityRecorded) = (true, false)
        adoptSessionShape()
    }

    /// Reads what the server has confirmed and compares it with what was read before it was sent.
    ///
    /// A chunk that nothing is known of, because the answer to it was lost or it was sent by an older
    /// version, is proven by the saved hash where that reaches; otherwise it is offered to the server
    /// again, which compares digests before it takes a byte.
    ///
    /// - Throws: ``SourceChanged`` when the file is another one; ``SourceTouched``.
    func compareSource() async throws {
        guard isInDoubt else { return }
        context.logger.notice(
            "comparing touched file", metadata: ["transfer": "\(context.lease.id)"])
        let known = try await context.store.chunkDigests(of: context.lease.id)
            .merging(sentDigests) { $1 }
        let saved = wholeFile.saved
        wholeFile.stop()
        wholeFile = PrefixHash(file: file, saved: nil, environment: context.environment)
        let hasUnknown = confirmed.indexes.contains { known[$0] == nil }
        if hasUnknown, saved.offsetBytes > 0 {
            _ = try await wholeFile.digest(ofFile: saved.offsetBytes)
            guard wholeFile.saved == saved else { throw SourceChanged(current: upload.identity) }
        }
        let provenEnd = hasUnknown ? saved.offsetBytes : 0
        for index in confirmed.indexes {
            try Task.checkCancellation()
            guard let range = upload.layout.range(ofChunk: index) else { continue }
            guard let digest = known[index] else {
                // The hash of the whole file says it of a session that takes no more chunks.
                if range.end > provenEnd, isSessionOpen { unproven.insert(index) }
                continue
            }
            let chunk = try await source.prepare(index, range: range, feeding: wholeFile)
            guard chunk.digest == digest else { throw SourceChanged(current: upload.identity) }
        }
        try await source.verifyUnchanged()
        for index in unproven { confirmed.remove(index) }
        isInDoubt = false
        try await recordIdentity()
    }

    /// Writes down what the file is, once nothing on the server is without proof.
    func recordIdentity() async throws {
        guard !isIdentityRecorded, !isInDoubt, unproven.isEmpty else { return }
        try await context.store.acceptSource(
            upload.identity, hash: wholeFile.saved, of: context.lease)
        isIdentityRecorded = true
    }
}
