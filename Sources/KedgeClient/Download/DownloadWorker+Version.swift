internal import KedgeModel
internal import Logging

/// Whether what is there and what the server has now are the same version of the file.
extension DownloadWorker {
    var hasProgress: Bool { !confirmed.indexes.isEmpty || !partials.isEmpty }

    /// True when a download may go on although nothing proves that the file is the same: a hash that
    /// is known before decides at the end, or the user said so.
    var mayGoOnWeakly: Bool {
        download.isHashPinned || remote.sha256 != nil || download.resumesUnverified
    }

    /// True when what is there came under a weak validator and nothing will decide about it any more.
    var isUnproven: Bool {
        hasProgress && download.validator?.isWeak != false && !mayGoOnWeakly
    }

    /// Tells the user why the download begins at its first byte once more.
    func tellBeginning(after failure: RequestFailure?) async throws {
        let isUndated = remote.hasRanges && remote.validator.isWeak && !mayGoOnWeakly
        let reason =
            isUndated
            ? "the server gives it no strong ETag and no date that is old enough; --sha256 or"
                + " --resume-unverified lets it go on"
            : "the server does not serve parts of it"
        let text = "The file is fetched from its first byte again: \(reason)."
        context.logger.notice(
            "download begins again", metadata: ["transfer": "\(context.lease.id)"])
        try await context.store.recordAttempt(
            context.lease, chunk: nil, code: failure?.code ?? .preconditionFailed, message: text,
            answer: failure?.answer)
    }

    func isOtherVersion(_ found: RemoteFile) -> Bool {
        guard hasProgress else { return false }
        let (now, known) = (found.validator, download.validator)
        if now.text != known?.text || found.byteCount != download.expectedSize { return true }
        // A strong date cannot follow on a strong tag, nor the other way round, and have the same text.
        if now.isWeak, known?.isWeak == false, !mayGoOnWeakly { return true }
        // Of the caller's hash nothing can be said; one that was withdrawn says nothing any more.
        guard !download.isHashPinned, let hash = found.sha256, let known = download.expectedHash
        else { return false }
        return hash != known
    }

    /// The file is another version now: everything is fetched anew, once (R103).
    static func remoteChanged(_ answer: ServerAnswer?) -> DownloadRestart {
        DownloadRestart(
            reason: .remoteChanged(answer),
            error: TransferError(
                .remoteChanged, operation: "download",
                explanation: "The file keeps changing on the server."))
    }
}
