internal import KedgeModel
internal import Logging

/// Compares the local progress with the server's version of the file.
extension DownloadWorker {
    var hasProgress: Bool { !confirmed.indexes.isEmpty || !partials.isEmpty }

    /// Whether a download may resume although nothing proves that the file is unchanged: a known
    /// hash decides at the end, or the user allowed it.
    var mayGoOnWeakly: Bool {
        download.isHashPinned || remote.sha256 != nil || download.resumesUnverified
    }

    /// Whether the progress rests on a weak validator and no later check will verify it.
    var isUnproven: Bool {
        hasProgress && download.validator?.isWeak != false && !mayGoOnWeakly
    }

    /// Reports to the user why the download starts from its first byte again.
    func reportRestart(after failure: RequestFailure?) async throws {
        let isUndated = remote.hasRanges && remote.validator.isWeak && !mayGoOnWeakly
        let reason =
            isUndated
            ? "the server sends no strong ETag and no date that is old enough; use --sha256 or"
                + " --resume-unverified to resume"
            : "the server does not serve ranges of it"
        let text = "The download restarts from the first byte: \(reason)."
        context.logger.notice(
            "download restarted from the first byte", metadata: ["transfer": "\(context.lease.id)"])
        try await context.store.recordAttempt(
            context.lease, chunk: nil, code: failure?.code ?? .preconditionFailed, message: text,
            answer: failure?.answer)
    }

    func isOtherVersion(_ found: RemoteFile) -> Bool {
        guard hasProgress else { return false }
        let (now, known) = (found.validator, download.validator)
        if now.text != known?.text || found.byteCount != download.expectedSize { return true }
        // A strong tag never has the text of a strong date: only a loss of strength is left.
        if now.isWeak, known?.isWeak == false, !mayGoOnWeakly { return true }
        // Nothing to compare if the caller pinned the hash, or if the server no longer sends one.
        guard !download.isHashPinned, let hash = found.sha256, let known = download.expectedHash
        else { return false }
        return hash != known
    }

    /// Returns the restart for a file that changed on the server; a download allows one.
    static func remoteChanged(_ answer: ServerAnswer?) -> DownloadRestart {
        DownloadRestart(
            reason: .remoteChanged(answer),
            error: TransferError(
                .remoteChanged, operation: "download",
                explanation: "The file keeps changing on the server."))
    }
}
