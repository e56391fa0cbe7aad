internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Marks and logs files whose stored bytes are missing or damaged.
struct DamageReports: Sendable {
    let context: EngineContext

    /// Marks a file as damaged whose blob turned out to be missing or of the wrong size.
    func reportDamage(of file: FileRecord) async throws {
        let isNew = try await context.metadata.markDamaged(file, at: context.clock.now())
        if isNew { try await logDamage(of: file.digest, "file is damaged") }
    }

    /// Logs every file that has the bytes, up to a thousand.
    func logDamage(of digest: SHA256Digest, _ what: Logger.Message) async throws {
        for file in try await context.metadata.liveFiles(with: digest, limit: 1000) {
            context.logger.critical(
                what, metadata: ["file.id": "\(file.id)", "file.sha256": "\(digest)"])
        }
    }
}
