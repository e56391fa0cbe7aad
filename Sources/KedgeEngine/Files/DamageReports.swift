internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Marks and logs files whose stored bytes are missing or damaged.
struct DamageReports: Sendable {
    let records: any ScrubRecords
    let clock: any WallClock
    let logger: Logger

    /// Marks a file as damaged whose blob turned out to be missing or of the wrong size.
    func reportDamage(of file: FileRecord) async throws {
        let isNew = try await records.markDamaged(file, at: clock.now())
        if isNew { try await logDamage(of: file.digest, "file is damaged") }
    }

    /// Logs every file that has the bytes, up to a thousand.
    func logDamage(of digest: SHA256Digest, _ what: Logger.Message) async throws {
        for file in try await records.liveFiles(with: digest, limit: 1000) {
            logger.critical(
                what, metadata: ["file.id": "\(file.id)", "file.sha256": "\(digest)"])
        }
    }
}
