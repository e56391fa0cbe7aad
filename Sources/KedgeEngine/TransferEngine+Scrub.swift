internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel
internal import Logging

// Bytes at rest: every blob is read once soon after its upload, and again from time to time. What is found
// damaged is refused from then on, replaced by an earlier copy where there is one, and healed when the same
// bytes are uploaded again. Rows say which blob is due, so a restart goes on where it was, and the nodes of
// a fleet share the work.
extension TransferEngine {
    /// Reads the blob that is due next.
    ///
    /// - Returns: False when none is due.
    /// - Throws: `CancellationError`, and what the database throws; the blob stays due.
    package func scrubNext() async throws -> Bool {
        guard let target = try await parts.metadata.claimScrub(lease: scrubLease) else {
            return false
        }
        try await scrub(target)
        return true
    }

    /// Makes rows for files of nodes that knew nothing of them. Looks at every file, so it is for once in a
    /// while.
    package func addMissingScrubs() async throws {
        try await parts.metadata.addMissingScrubs(at: parts.clock.now())
    }

    /// True while bytes of clients are moving: the scrub stays behind them.
    package var isTransferring: Bool { activeWriteCount > 0 || transferClock.isRecent }

    /// Every minute or so: keeps copies that are being read, removes copies that nobody needs, and tells how
    /// far behind the scrub is.
    package func tendScrub() async throws {
        let now = parts.clock.now()
        let open = openBlobs.locations
        if !open.isEmpty {
            try await parts.metadata.keepSuperseded(
                at: open, until: now.advanced(by: configuration.supersededLifetime))
        }
        for copy in try await parts.metadata.releasableBlobs(at: now, limit: 100) {
            try await release(copy)
        }
        try await tellBacklog()
    }

    /// How far behind the scrub is.
    package func scrubBacklog() async throws -> ScrubBacklog {
        try await parts.metadata.scrubBacklog()
    }

    /// What the scrub of this process has done.
    package var scrubbed: ScrubCounts { scrubCounts.withLock { $0 } }

    private func tellBacklog() async throws {
        let backlog = try await parts.metadata.scrubBacklog()
        guard let oldest = backlog.oldestNew else { return }
        let now = parts.clock.now()
        guard now > oldest.advanced(by: configuration.scrubNewFilesWithin) else { return }
        let lag = now.millisecondsSinceEpoch - oldest.millisecondsSinceEpoch
        logger.warning(
            "the scrub of new files is behind",
            metadata: [
                "files": "\(backlog.newCount)", "lag.seconds": "\(lag / 1000)",
                "target.seconds": "\(configuration.scrubNewFilesWithin.components.seconds)",
            ])
    }

    private var scrubLease: WorkLease {
        let now = parts.clock.now()
        return WorkLease(
            holder: parts.nodeName, now: now, until: now.advanced(by: configuration.scrubLease))
    }

    /// Most bytes a second that the scrub reads now.
    private var scrubRate: Int64 {
        max(1, configuration.scrubBytesPerSecond / (isTransferring ? 8 : 1))
    }

    private var blobReading: BlobReading {
        BlobReading(
            scrubber: ByteScrubber(pool: parts.pool) { [self] in scrubRate },
            tally: CheckTally { _ in }, failsForGood: parts.bytes is any LocalByteStore)
    }

    private func scrub(_ target: ScrubTarget) async throws {
        let reading = blobReading
        defer {
            let count = reading.tally.summary.hashedByteCount
            scrubCounts.withLock { $0.byteCount += count }
        }
        // A new blob is compared with the chunk list of each file that has it: the lists need not be cut
        // alike. Later the newest one says enough.
        let files = try await parts.metadata.liveFiles(
            with: target.digest, limit: target.isNew ? 16 : 1)
        var seen: Set<SHA256Digest> = []
        var verdict = ScrubVerdict.undecided
        for file in files {
            guard let digests = try await listedDigests(of: file) else { continue }
            guard seen.insert(Self.digest(ofList: digests)).inserted else { continue }
            verdict = try await self.verdict(
                on: file, digests, target, reading, isFirst: seen.count == 1)
            if verdict != .right { break }
        }
        try await finish(target, verdict, files, reading)
    }

    /// Names a chunk list in less room than it takes.
    private static func digest(ofList digests: [SHA256Digest]) -> SHA256Digest {
        var hasher = SHA256Hasher()
        for digest in digests { digest.bytes.withUnsafeBytes { hasher.update($0) } }
        return hasher.digest()
    }

    /// - Returns: Nil when the file was deleted meanwhile.
    private func listedDigests(of file: FileRecord) async throws -> [SHA256Digest]? {
        do {
            return try await parts.metadata.chunkDigests(of: file)
        } catch MetadataError.notFound {
            return nil
        }
    }

    private func verdict(
        on file: FileRecord, _ digests: [SHA256Digest], _ target: ScrubTarget,
        _ reading: BlobReading, isFirst: Bool
    ) async throws -> ScrubVerdict {
        guard let reader = try await openWhole(file) else { return .damaged }
        let layout = ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize)
        var renewAt = parts.clock.now().advanced(by: configuration.scrubLease / 3)
        do {
            let verdict = try await reading.verdict(
                on: reader, layout, digests, from: isFirst ? target.checkedChunkCount : 0
            ) { count in
                guard parts.clock.now() >= renewAt else { return true }
                renewAt = parts.clock.now().advanced(by: configuration.scrubLease / 3)
                return try await parts.metadata.renewScrub(
                    target, lease: scrubLease,
                    checkedChunkCount: isFirst ? count : target.checkedChunkCount)
            }
            await reader.close()
            return verdict
        } catch {
            await reader.close()
            throw error
        }
    }

    private func finish(
        _ target: ScrubTarget, _ verdict: ScrubVerdict, _ files: [FileRecord],
        _ reading: BlobReading
    ) async throws {
        let now = parts.clock.now()
        switch verdict {
        case .right:
            let isCurrent = try await parts.metadata.finishScrub(
                target, .right, at: now, nextAt: nextScrub(after: now))
            guard isCurrent else { return }
            scrubCounts.withLock { $0.verifiedCount += 1 }
            if files.contains(where: { $0.damagedAt != nil }) {
                logger.notice(
                    "a file that was damaged is whole again",
                    metadata: ["file.sha256": "\(target.digest)"])
            }
        case .damaged:
            try await replaceOrMark(target, files, reading)
        case .undecided:
            _ = try await parts.metadata.finishScrub(
                target, .undecided, at: now, nextAt: now.advanced(by: .seconds(600)))
        }
    }

    private func nextScrub(after now: Timestamp) -> Timestamp {
        configuration.scrubPeriod > .zero
            ? now.advanced(by: configuration.scrubPeriod * 0.9)
            : Timestamp(millisecondsSinceEpoch: .max)
    }

    /// Puts an earlier copy that is right in the place of a damaged blob, or marks the blob.
    private func replaceOrMark(
        _ target: ScrubTarget, _ files: [FileRecord], _ reading: BlobReading
    ) async throws {
        for copy in try await parts.metadata.supersededBlobs(of: target.digest) {
            guard try await isRight(copy, for: files, reading) else { continue }
            guard try await restore(copy, target) else { return }
            scrubCounts.withLock { $0.restoredCount += 1 }
            tellDamage(files, "the bytes of a file were damaged, and replaced by an earlier copy")
            return
        }
        // Looked at again from time to time: a disk that failed for a while may give them again.
        let now = parts.clock.now()
        let isCurrent = try await parts.metadata.finishScrub(
            target, .damaged, at: now, nextAt: now.advanced(by: .seconds(6 * 3600)))
        guard isCurrent else { return }
        scrubCounts.withLock { $0.damagedCount += 1 }
        if files.allSatisfy({ $0.damagedAt == nil }) { tellDamage(files, "a file is damaged") }
    }

    private func isRight(
        _ copy: SupersededBlob, for files: [FileRecord], _ reading: BlobReading
    ) async throws -> Bool {
        guard let file = files.first, let digests = try await listedDigests(of: file) else {
            return false
        }
        let reader: any BlobReader
        do {
            reader = try await parts.bytes.openSuperseded(copy)
        } catch is ByteStoreError {
            return false
        }
        let layout = ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize)
        do {
            let verdict = try await reading.verdict(on: reader, layout, digests)
            await reader.close()
            return verdict == .right
        } catch {
            await reader.close()
            throw error
        }
    }

    /// - Returns: False when the blob is another one by now.
    private func restore(_ copy: SupersededBlob, _ target: ScrubTarget) async throws -> Bool {
        let now = parts.clock.now()
        guard copy.location == nil else {
            return try await parts.metadata.restoreSuperseded(
                copy, of: target, at: now, nextAt: nextScrub(after: now),
                keepUntil: now.advanced(by: configuration.supersededLifetime))
        }
        // No upload of the same bytes may take the name between the question and the rename.
        return try await digestLocks.withLock(target.digest) {
            guard
                try await parts.metadata.renewScrub(
                    target, lease: scrubLease, checkedChunkCount: 0)
            else { return false }
            try await parts.bytes.restoreSuperseded(copy)
            let isCurrent = try await parts.metadata.finishScrub(
                target, .right, at: now, nextAt: nextScrub(after: now))
            try await parts.metadata.forgetSuperseded(copy)
            return isCurrent
        }
    }

    /// Removes a copy beside a blob that was read and found right.
    private func release(_ copy: SupersededBlob) async throws {
        guard copy.location == nil else {
            return try await parts.metadata.forgetSuperseded(copy)
        }
        try await digestLocks.withLock(copy.digest) {
            // An upload may have superseded the blob that was read.
            let now = parts.clock.now()
            guard
                try await parts.metadata.releasableBlobs(at: now, limit: 1000).contains(copy)
            else { return }
            try await parts.bytes.removeSuperseded(copy)
            try await parts.metadata.forgetSuperseded(copy)
        }
    }

    /// Marks a file whose bytes turned out to be gone when they were asked for.
    func reportDamage(of file: FileRecord) async throws {
        let isNew = try await parts.metadata.markDamaged(file.digest, at: parts.clock.now())
        if isNew { tellDamage([file], "a file is damaged") }
    }

    private func tellDamage(_ files: [FileRecord], _ what: Logger.Message) {
        for file in files {
            logger.critical(
                what, metadata: ["file.id": "\(file.id)", "file.sha256": "\(file.digest)"])
        }
    }
}
