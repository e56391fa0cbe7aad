package import KedgeEngine
package import KedgeModel

extension SimulatedMetadata {
    package func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID, within quota: QuotaLimits
    ) async throws -> SessionRecord {
        try write { rows in
            var session = try rows.session(id, in: .open, .finalizing, .completed)
            guard session.record.state == .open else { return session.record }
            guard session.isComplete else {
                throw MetadataError.failed("session \(id) does not have all its chunks")
            }
            // Detects equal identifiers from a generator that starts over.
            guard !rows.sessions.values.contains(where: { $0.record.fileID == fileID }) else {
                throw MetadataError.failed("file \(fileID) is there already")
            }
            session.record.state = .finalizing
            session.record.finalDigest = digest
            session.record.fileID = fileID
            let before = session.reservation
            session.reservedBytes = nil
            rows.sessions[id] = session
            try rows.quota(of: session.record.owner, within: quota).requireRoom(
                forFileOf: session.reservation, growth: session.reservation - before)
            return session.record
        }
    }

    package func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord {
        try write { rows in
            let session = try rows.session(id, in: .finalizing, .completed)
            guard let fileID = session.record.fileID else { throw MetadataError.notFound }
            if session.record.state == .finalizing {
                guard session.isComplete else {
                    throw MetadataError.failed("session \(id) does not have all its chunks")
                }
                try rows.makeFile(
                    fileID, of: session, at: now, location: location, keepUntil: keepUntil)
            }
            guard let file = rows.file(fileID) else { throw MetadataError.notFound }
            return file
        }
    }

    package func completeFinalize(
        of id: SessionID, from stored: StoredFileShape, digest: SHA256Digest, fileID: FileID,
        at now: Timestamp
    ) async throws -> FileRecord? {
        try write { rows in
            let session = try rows.session(id, in: .open, .completed)
            if session.record.state == .completed {
                guard session.record.finalDigest == digest else { return nil }
                return session.record.fileID.flatMap { rows.file($0) }
            }
            guard session.record.canBecome(stored, digest),
                session.reservation >= stored.byteCount, session.claimedEnd == 0,
                let source = rows.files(like: stored).first(where: { $0.digest == digest }),
                let digests = rows.files[source.id]?.digests,
                stored.isWhole(chunkCount: digests.count, byteCount: source.byteCount)
            else { return nil }
            guard rows.files[fileID] == nil else {
                throw MetadataError.failed("file \(fileID) is there already")
            }
            var completed = session
            for (index, digest) in digests.enumerated() {
                let range = session.record.layout.range(ofChunk: index)
                completed.chunks[index] = CommittedChunk(
                    index: index, byteCount: range?.byteCount ?? 0, digest: digest)
            }
            completed.giveUpBytes()
            completed.record.state = .completed
            completed.record.fileID = fileID
            completed.record.finalDigest = digest
            rows.sessions[id] = completed
            rows.files[fileID] = MetadataRows.File(
                record: FileRecord(
                    id: fileID, owner: stored.owner, sessionID: id,
                    fileName: session.record.fileName, mimeType: session.record.mimeType,
                    byteCount: stored.byteCount, digest: digest, chunkSize: stored.chunkSize,
                    createdAt: now, path: session.record.path,
                    modified: session.record.modified),
                digests: digests)
            rows.makeGarbage(ofBytesOf: session)
            if let scrub = rows.scrubs[digest],
                scrub.verifiedAt ?? stored.verifiedSince
                    < now.advanced(by: .zero - StoredFileShape.scrubAge)
            {
                rows.scrubs[digest]?.dueAt = min(scrub.dueAt, now)
            }
            return rows.file(fileID)
        }
    }

    package func storedFiles(
        like shape: StoredFileShape, _ match: StoredFileMatch, limit: Int
    ) async throws -> [StoredFile] {
        try read { rows in
            let files = rows.files(like: shape).compactMap { file in
                rows.files[file.id]?.digests.first.map {
                    StoredFile(
                        remoteFileId: file.id, fileHashSha256: file.digest, firstChunkSha256: $0)
                }
            }
            let newest = files.prefix(match.comparedFileCount).filter(match.matches)
            return StoredFile.distinct(newest, limit: limit)
        }
    }

    package func finalizingSessions() async throws -> [SessionRecord] {
        try read { rows in
            rows.sessionsInOrder.map(\.record).filter { $0.state == .finalizing }
        }
    }

    package func reopen(_ id: SessionID) async throws {
        try write { rows in
            let session = try rows.session(id, in: .open, .finalizing)
            // The finalize job of an open session ends here, too.
            rows.sessions[id]?.job = nil
            guard session.record.state == .finalizing else { return }
            rows.sessions[id]?.record.state = .open
            rows.sessions[id]?.record.fileID = nil
            rows.sessions[id]?.record.finalDigest = nil
            if let digest = session.record.finalDigest { rows.makeGarbage(unlessNeeded: digest) }
        }
    }

    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord? {
        try read { rows in
            rows.file(id).flatMap { $0.owner == owner ? $0 : nil }
        }
    }

    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try read { rows in
            let listed = rows.files.keys.compactMap { rows.file($0) }
                .filter { $0.owner == owner && $0.deletedAt == nil }
                .sorted { ($0.createdAt, $0.id.text) > ($1.createdAt, $1.id.text) }
            let rest = listed.drop { file in
                guard let cursor else { return false }
                return (file.createdAt, file.id.text) >= (cursor.createdAt, cursor.id.text)
            }
            return Array(rest.prefix(limit))
        }
    }

    package func files(
        of owner: OwnerID, under prefix: PathPrefix, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try read { rows in
            let listed = rows.files.keys.compactMap { rows.file($0) }
                .filter { file in
                    guard file.owner == owner, file.deletedAt == nil, let path = file.path else {
                        return false
                    }
                    return prefix.text.isEmpty || path.utf8.elementsEqual(prefix.text.utf8)
                        || path.utf8.starts(with: "\(prefix.text)/".utf8)
                }
                .sorted { Self.isBefore(FileCursor($0), FileCursor($1)) }
            let rest = listed.drop { file in
                cursor.map { !Self.isBefore($0, FileCursor(file)) } ?? false
            }
            return Array(rest.prefix(limit))
        }
    }

    /// Whether a position comes first in a list by path.
    private static func isBefore(_ first: FileCursor, _ second: FileCursor) -> Bool {
        let (path, other) = (first.path ?? "", second.path ?? "")
        guard path.utf8.elementsEqual(other.utf8) else {
            return path.utf8.lexicographicallyPrecedes(other.utf8)
        }
        return (first.createdAt, first.id.text) > (second.createdAt, second.id.text)
    }

    package func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest] {
        try read { rows in
            let digests = rows.files[file.id]?.digests ?? []
            let layout = ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize)
            guard digests.count == layout.chunkCount else { throw MetadataError.notFound }
            return digests
        }
    }

    package func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws {
        try write { rows in
            guard let file = rows.files[id]?.record, file.owner == owner else {
                throw MetadataError.notFound
            }
            guard file.deletedAt == nil else { return }
            rows.files[id]?.record.deletedAt = now
            if rows.blobs[file.digest] == nil {
                rows.makeGarbage(unlessNeeded: file.digest)
            } else {
                rows.dropBlob(unlessNeeded: file.digest)
            }
            if !rows.isNeeded(file.digest) { rows.dropScrub(of: file.digest) }
        }
    }

    package func blobLocation(fromStaging key: StagingKey) async throws -> String? {
        try read { rows in
            rows.blobs.values.first { $0.stagingKey == key }?.location
                ?? rows.superseded.first { $0.key == key }?.location
        }
    }
}

extension MetadataRows {
    /// The file of this id, deleted or not.
    func file(_ id: FileID) -> FileRecord? {
        guard var record = files[id]?.record else { return nil }
        record.location = blobs[record.digest]?.location
        record.damagedAt = scrubs[record.digest]?.damagedAt
        return record
    }

    /// Files whose bytes a session of this shape may use, newest first.
    fileprivate func files(like shape: StoredFileShape) -> [FileRecord] {
        files.keys.compactMap { file($0) }
            .filter { file in
                guard let scrub = scrubs[file.digest], scrub.damagedAt == nil else { return false }
                let times = [scrub.verifiedAt, scrub.storedAt].compactMap { $0 }
                return file.owner == shape.owner && file.byteCount == shape.byteCount
                    && file.chunkSize == shape.chunkSize && file.deletedAt == nil
                    && times.contains { $0 >= shape.verifiedSince }
            }
            .sorted { ($0.createdAt, $0.id.text) > ($1.createdAt, $1.id.text) }
    }

    fileprivate mutating func dropBlob(unlessNeeded digest: SHA256Digest) {
        let isNeeded = files.values.contains {
            $0.record.digest == digest && $0.record.deletedAt == nil
        }
        guard !isNeeded, let blob = blobs.removeValue(forKey: digest) else { return }
        add(.staging(blob.stagingKey))
    }

    /// Makes the file of a finalizing session and completes the session.
    ///
    /// - Throws: `failed` when there is a file of that id, or was one.
    fileprivate mutating func makeFile(
        _ id: FileID, of session: Session, at now: Timestamp, location: String?,
        keepUntil: Timestamp
    ) throws {
        let record = session.record
        guard files[id] == nil else { throw MetadataError.failed("file \(id) is there already") }
        release(sourcesOf: record, at: now)
        guard let byteCount = record.fileSize, let digest = record.finalDigest else {
            preconditionFailure("a finalizing session has a size and a digest")
        }
        files[id] = File(
            record: FileRecord(
                id: id, owner: record.owner, sessionID: record.id, fileName: record.fileName,
                mimeType: record.mimeType, byteCount: byteCount, digest: digest,
                chunkSize: record.chunkSize, createdAt: now, path: record.path,
                modified: record.modified),
            digests: session.progress.chunks.map(\.digest))
        var completed = session
        completed.giveUpBytes()
        completed.record.state = .completed
        sessions[record.id] = completed
        beginScrub(of: digest, byteCount: byteCount, at: now)
        guard let location else { return }
        if let old = blobs[digest], old.location != location {
            add(
                SupersededBlob(
                    digest: digest, byteCount: byteCount, key: old.stagingKey,
                    location: old.location, keepUntil: keepUntil))
            garbage[.staging(old.stagingKey)] = nil
        }
        blobs[digest] = Blob(stagingKey: record.stagingKey, location: location)
        add(.staging(record.stagingKey, state: session.stagingState))
    }
}
