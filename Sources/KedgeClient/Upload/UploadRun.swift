internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Limit of attribute changes between two acknowledgements.
private let maxTouchCount = 8

/// State and steps that the workers of all upload protocols share.
protocol UploadRun: Actor {
    var context: WorkerContext { get }
    var file: any OpenFile { get }
    var upload: UploadTransfer { get set }
    /// Running SHA-256 of the whole file.
    var wholeFile: FileHasher { get set }
    var source: UploadSource { get }
    /// True if the ctime differs and the bytes are not compared yet.
    var isInDoubt: Bool { get set }
    /// Number of times the file was touched since the last acknowledgement.
    var touchCount: Int { get set }

    /// Sends what the server lacks, as it reports, and completes the upload.
    ///
    /// - Throws: ``UploadTrouble``; ``SourceTouched``; errors that end the run.
    func makeRound() async throws
    /// Prepares a round after a change of the file's attributes.
    func doubt(_ touched: SourceTouched) throws(RunInterruption)
    /// Prepares a round after trouble. Also called before the run ends with it, so that the next
    /// run does not continue what failed in this one.
    func recover(from trouble: UploadTrouble) async throws
}

/// Limit of rounds that end in trouble, against a server that forgets uploads faster than bytes
/// arrive.
private let maxTroubleCount = 5

extension UploadRun {
    /// Makes rounds until one completes the upload.
    func makeRounds() async throws {
        var troubleCount = 0
        while true {
            do {
                return try await makeRound()
            } catch let touched as SourceTouched {
                try doubt(touched)
            } catch let trouble as UploadTrouble {
                troubleCount += 1
                context.logger.notice(
                    "upload interrupted",
                    metadata: [
                        "transfer": "\(context.lease.id)",
                        "code": "\(trouble.failure.code.rawValue)",
                    ])
                try await recover(from: trouble)
                guard troubleCount < maxTroubleCount else { throw trouble.failure }
            }
        }
    }

    /// Adopts the identity of a touched file, whose bytes are then in doubt.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` for a file that is touched repeatedly.
    func adoptIdentity(of touched: SourceTouched) throws(RunInterruption) {
        touchCount += 1
        guard touchCount <= maxTouchCount else { throw .sourceChanged(touched.current) }
        upload.identity = touched.current
        upload.fileHash = nil
        isInDoubt = true
    }

    /// Starts to hash the whole file from its first byte again.
    func restartHash() {
        wholeFile.stop()
        wholeFile = FileHasher(file: file, saved: nil, environment: context.environment)
    }

    /// Discards all computed hashes of the whole file.
    func discardHashes() {
        restartHash()
        upload.fileHash = nil
    }

    /// Records the digest of the whole file, unless the record has it.
    func recordFileHash(_ digest: SHA256Digest) async throws {
        guard upload.fileHash != digest else { return }
        try await context.store.setFileHash(
            digest, readBackByteCount: wholeFile.readBackByteCount, of: context.lease)
        upload.fileHash = digest
    }

    /// Records that the server has other bytes than the client read.
    ///
    /// - Parameters:
    ///   - mismatch: The two digests, if the server reported its own.
    ///   - facts: Further fields of the log entry.
    /// - Returns: The number of integrity failures so far.
    /// - Throws: ``RunInterruption/sourceChanged`` if a change of the file may explain it.
    func recordIntegrityFailure(
        _ failure: RequestFailure, mismatch: DigestMismatch? = nil, facts: Logger.Metadata = [:]
    ) async throws -> Int {
        try await source.verifyUntouched()
        let common: Logger.Metadata = [
            "transfer": "\(context.lease.id)", "code": "\(failure.code.rawValue)",
            "computed": "\(upload.fileHash?.hex ?? "-")",
            "error": "\(String(reflecting: failure))",
        ]
        context.logger.error("integrity mismatch", metadata: common.merging(facts) { $1 })
        if let mismatch { try await context.store.recordMismatch(mismatch, of: context.lease) }
        return try await context.store.recordIntegrityFailure(
            context.lease, message: "The bytes on the server differ from this file; starting over.",
            answer: failure.answer)
    }
}
