internal import KedgeModel

/// Advice to the user about a failure; nil where nothing is known to help.
package enum FailureAdvice {
    package static func text(for record: TransferRecord) -> String? {
        guard let code = record.status.lastErrorCode else { return nil }
        return local(code, record) ?? remote(code, record)
            ?? (code.facts.isRetryable && ![.protocolViolation, .redirected].contains(code)
                ? "Retry to resume where it stopped." : nil)
    }

    /// Advice about local files and disks.
    private static func local(_ code: ErrorCode, _ record: TransferRecord) -> String? {
        switch code {
        case .fileMissing: "Put the file back or select it again, then retry."
        case .fileChanged: "Retry when no program writes to the file."
        case .diskFull where record.confirmedByteCount == 0: "Free some space, then retry."
        case .diskFull: "Free some space, then retry: received bytes are kept."
        case .destinationExists: "Choose another name, or overwrite."
        case .sessionFileMismatch:
            "Choose the file that the session was begun with, or upload without naming a session."
        default: nil
        }
    }

    /// Advice about the server's files and limits.
    private static func remote(_ code: ErrorCode, _ record: TransferRecord) -> String? {
        let isDownload = record.direction == .download
        switch code {
        case .linkInvalid, .linkExpired:
            return "Ask for another link; the same command with it continues where possible."
        case .storageFull: return "Retry once the server has space."
        case .chunkHashMismatch where isDownload:
            // After the same wrong bytes each time: repeated ones differ on a damaging network.
            return "Received bytes are kept. A retry over another network helps if a device on the"
                + " way damages them. Otherwise the server's copy is damaged: it is repaired by"
                + " `kedge upload --again FILE`, run where the file is still whole."
        case .integrityMismatch, .chunkHashMismatch, .chunkConflict:
            return record.hasGivenSession ? nil : "Retry from scratch."
        case .fileDamaged:
            return isDownload ? "Or download it from another source." : nil
        case .fileNotFound, .fileGone: return isDownload ? "Check the id or address." : nil
        // The limit of a file can be that of a link or an owner, which the message names.
        case .requestTooLarge: return "Ask for a higher limit on the server."
        case .nameNotFound: return "Check the address."
        case .redirected: return nil
        case .tlsRefused, .certificateRejected, .notKedge, .redirectLoop, .contentEncoded:
            return "Correct this, then retry."
        case .remoteChanged: return "Retry to fetch the new version."
        case .sessionNotFound, .sessionExpired, .sessionClosed:
            return record.hasGivenSession
                ? "Check the id of the session, or upload without naming one." : nil
        default: return nil
        }
    }
}

extension TransferRecord {
    fileprivate var hasGivenSession: Bool { uploadRecord?.givenSessionID != nil }
}
