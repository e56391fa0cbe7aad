package import KedgeEngine
internal import KedgeHash
package import KedgeModel

/// Records that differ from each other only where a test says so.
package enum Sample {
    package static let owner = OwnerID("owner")
    package static let stranger = OwnerID("stranger")
    /// Size of a chunk in the samples; files of ``fileSize`` have three, the last one short.
    package static let chunkSize: Int64 = 100
    package static let fileSize: Int64 = 250

    /// A time, in seconds after the start of all samples.
    package static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: 1_700_000_000_000 + seconds * 1000)
    }

    /// An open session, made at second 0 and valid until second 1000.
    package static func session(
        owner: OwnerID = owner, fileSize: Int64? = fileSize, chunkSize: Int64 = chunkSize,
        declaredDigest: SHA256Digest? = nil, createdAt: Timestamp = time(0),
        expiresAt: Timestamp = time(1000)
    ) -> SessionRecord {
        let id = SessionID.random()
        return SessionRecord(
            id: id, owner: owner, stagingKey: StagingKey(id), fileName: "ship's log.txt",
            mimeType: "text/plain", fileSize: fileSize, chunkSize: chunkSize,
            declaredDigest: declaredDigest, metadata: ["mast": "é\"\n"], state: .open,
            createdAt: createdAt, expiresAt: expiresAt)
    }

    /// The shape of files of the sample size whose blob was verified at a second or later.
    package static func shape(
        owner: OwnerID = owner, byteCount: Int64 = fileSize, chunkSize: Int64 = chunkSize,
        verifiedSince seconds: Int64
    ) -> StoredFileShape {
        StoredFileShape(
            owner: owner, byteCount: byteCount, chunkSize: chunkSize,
            verifiedSince: time(seconds))
    }

    /// The digest of some text.
    package static func digest(_ text: String) -> SHA256Digest {
        SHA256Hasher.digest(of: Array(text.utf8))
    }

    /// A chunk that fits the layout of a sample session.
    package static func chunk(_ index: Int, _ text: String = "chunk") -> CommittedChunk {
        CommittedChunk(
            index: index, byteCount: index == 2 ? 50 : chunkSize, digest: digest("\(text) \(index)")
        )
    }

    package static func partial(_ index: Int, byteCount: Int64 = 30) -> PartialRecord {
        var hasher = SHA256Hasher()
        hasher.update([UInt8](repeating: 7, count: Int(byteCount)))
        return PartialRecord(
            index: index, byteCount: byteCount, hashState: hasher.savedState,
            declaredDigest: digest("whole \(index)"))
    }

    package static func rival(_ index: Int, byteCount: Int64 = 40) -> PartialRecord {
        var rival = partial(index, byteCount: byteCount)
        rival.declaredDigest = digest("other whole \(index)")
        rival.isRival = true
        return rival
    }

    /// A touch that keeps the session valid until a second.
    package static func touch(
        _ record: SessionRecord, until seconds: Int64 = 1000, prefix: Int64? = nil
    ) -> SessionUpdate {
        SessionUpdate(
            id: record.id, expiresAt: time(seconds),
            prefix: prefix.map {
                HashCheckpoint(offset: $0, state: partial(0, byteCount: $0).hashState)
            })
    }
}

extension MetadataStore {
    /// Creates a sample session, or the given one.
    package func make(_ record: SessionRecord = Sample.session()) async throws -> SessionRecord {
        guard
            case .created(let created) = try await createSession(
                record, idempotencyKey: nil, adopting: nil)
        else { throw MetadataError.failed("a create without a key creates") }
        return created
    }

    /// Commits every chunk of a sample session.
    func fill(_ record: SessionRecord) async throws {
        let count = record.layout.chunkCount ?? 0
        _ = try await commit(
            (0..<count).map { Sample.chunk($0) }, touching: Sample.touch(record))
    }

    /// Makes a file out of a new sample session.
    func makeFile(
        _ content: String = "content", path: String? = nil, owner: OwnerID = Sample.owner,
        at seconds: Int64 = 10, location: String? = nil
    ) async throws -> FileRecord {
        var session = Sample.session(owner: owner)
        session.metadata[FilePath.metadataKey] = path
        let record = try await make(session)
        try await fill(record)
        _ = try await beginFinalize(
            of: record.id, digest: Sample.digest(content), fileID: .random())
        return try await completeFinalize(
            of: record.id, at: Sample.time(seconds), location: location,
            keepUntil: Sample.time(seconds + 60))
    }

    /// Completes a session whose blob is named by its digest.
    package func completeFinalize(of id: SessionID, at now: Timestamp) async throws -> FileRecord {
        try await completeFinalize(of: id, at: now, location: nil, keepUntil: now)
    }

    /// Forgets garbage that ``claimAll(at:)`` has claimed.
    func forget(_ garbage: Garbage, claimedAt seconds: Int64 = 5000) async throws {
        try await forgetGarbage(garbage, claimedUntil: Sample.time(seconds + 60))
    }

    /// The session as its owner sees it at this moment.
    package func now(_ record: SessionRecord) async throws -> SessionProgress? {
        try await progress(of: record.id, owner: record.owner)
    }

    /// Claims everything that a sweep at the second would remove.
    func claimAll(at seconds: Int64 = 5000) async throws -> Set<Garbage> {
        Set(
            try await claimGarbage(
                now: Sample.time(seconds), leaseUntil: Sample.time(seconds + 60), limit: 1000))
    }
}
