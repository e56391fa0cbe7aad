internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Reconciles rows and bytes at the start of the service.
struct Recovery: Sendable {
    let rows: any SessionStore & ChunkStore & GarbageQueue
    let bytes: any ByteStore
    let logger: Logger
    let resumption: FinalizeResumption

    /// Reconciles rows and bytes after a stop of any kind.
    func recover() async throws {
        // A shared store is never scanned by a single node.
        guard let local = bytes as? any LocalByteStore else { return }
        try await translating {
            try await removeUncountedRivals(in: local)
            for session in try await rows.unfinishedSessions() {
                if session.record.state == .finalizing {
                    await resumption.finishInterrupted(session.record)
                } else {
                    try await checkBytes(of: session, in: local)
                }
            }
            for key in try await local.stagingKeys()
            where try await !rows.isKnown(key) {
                logger.error(
                    "bytes without a session quarantined", metadata: ["staging.key": "\(key)"])
                try await local.quarantine(key)
            }
        }
    }

    /// Removes files of rivals that no row counts. They remain when a process stops between
    /// committing a chunk and removing its rival. Rivals of sessions that can still be adopted
    /// stay. Rivals without a session are moved to quarantine.
    private func removeUncountedRivals(in local: any LocalByteStore) async throws {
        let found = try await local.rivals()
        guard !found.isEmpty else { return }
        let keys = Set(found.map(\.key))
        var counted: [StagingKey: Set<Int>] = [:]
        for session in try await rows.unfinishedSessions()
        where keys.contains(session.record.stagingKey) {
            let record = session.record
            let progress = try await rows.progress(of: record.id, owner: record.owner)
            let rivals = (progress?.partials ?? []).filter(\.isRival)
            counted[record.stagingKey] = Set(rivals.map(\.index))
        }
        for name in found {
            if let indexes = counted[name.key] {
                if !indexes.contains(name.index) { try await local.removeRival(name) }
            } else if try await !rows.isKnown(name.key) {
                logger.error(
                    "bytes without a session quarantined",
                    metadata: ["staging.key": "\(name.key)"])
                try await local.quarantine(name.key)
            }
        }
    }

    private func checkBytes(
        of session: UnfinishedSession, in local: any LocalByteStore
    ) async throws {
        guard session.claimedEnd > 0 else { return }
        let record = session.record
        let byteCount = try await local.stagingByteCount(record.stagingKey) ?? 0
        guard byteCount < session.claimedEnd else { return }
        guard let progress = try await rows.progress(of: record.id, owner: record.owner) else {
            return
        }
        let lost = progress.chunks.filter { chunk in
            (record.layout.range(ofChunk: chunk.index)?.start ?? 0) + chunk.byteCount > byteCount
        }
        logger.critical(
            "acknowledged bytes are missing on disk",
            metadata: [
                "session.id": "\(record.id)", "expected": "\(session.claimedEnd)",
                "found": "\(byteCount)", "chunks": "\(lost.count)",
            ])
        try await rows.invalidateChunks(lost.map(\.index), of: record.id)
    }
}
