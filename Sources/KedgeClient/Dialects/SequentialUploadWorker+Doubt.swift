internal import KedgeModel
internal import Logging

/// What is done when only the file's time of change differs; see ``UploadWorker/compareSource()``.
extension SequentialUploadWorker {
    /// Changes of attributes without an acknowledged byte in between that are followed up.
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
        isInDoubt = true
        source = Self.makeSource(upload, file: file, pieces: pieces, context: context)
    }

    /// Reads what the server has acknowledged and compares it with the state of the hash that was saved
    /// before it was sent.
    ///
    /// - Throws: ``SourceChanged`` when the file is another one, or cannot be proven to be the same;
    ///   ``SourceTouched``.
    func compareSource(upTo offset: Int64) async throws {
        guard isInDoubt else { return }
        context.logger.notice(
            "comparing touched file", metadata: ["transfer": "\(context.lease.id)"])
        let saved = wholeFile.saved
        wholeFile.stop()
        wholeFile = PrefixHash(file: file, saved: nil, environment: context.environment)
        if offset > 0 {
            guard saved.offsetBytes >= offset else {
                throw SourceChanged(current: upload.identity)
            }
            _ = try await wholeFile.digest(ofFile: saved.offsetBytes)
            guard wholeFile.saved == saved else { throw SourceChanged(current: upload.identity) }
            try await source.verifyUnchanged()
        }
        isInDoubt = false
        try await context.store.acceptSource(
            upload.identity, hash: wholeFile.saved, of: context.lease)
    }
}
