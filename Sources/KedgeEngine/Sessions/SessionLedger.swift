internal import KedgeHash
package import KedgeModel

/// The state of one session: a value without clock, I/O or waiting. ``LiveSession`` owns one and
/// changes it only after the store has changed.
package struct SessionLedger: Sendable {
    package private(set) var record: SessionRecord
    package private(set) var committed = ChunkSet()
    package private(set) var partials: [Int: PartialRecord] = [:]
    /// First bytes of other bodies, beside the partials.
    package private(set) var rivals: [Int: PartialRecord] = [:]
    package private(set) var committedByteCount: Int64 = 0
    /// The revision last loaded from the store. Changes of this node are not counted in it.
    package private(set) var revision: Int64
    private var digests: [Int: SHA256Digest] = [:]
    /// Locations of the chunks that have one.
    private var locations: [Int: String] = [:]

    package init(_ progress: SessionProgress) {
        record = progress.record
        revision = progress.revision
        for chunk in progress.chunks { insert(chunk) }
        for partial in progress.partials { setPartial(partial) }
    }

    /// Returns the digest of a committed chunk; nil for any other chunk.
    package func digest(ofChunk index: Int) -> SHA256Digest? { digests[index] }

    /// The committed chunks, by ascending index.
    package var chunks: [CommittedChunk] {
        committed.indexes.compactMap { index in
            guard let digest = digests[index], let range = record.layout.range(ofChunk: index)
            else {
                return nil
            }
            return CommittedChunk(
                index: index, byteCount: range.byteCount, digest: digest,
                location: locations[index])
        }
    }

    /// Applies the changes since ``revision``. Ignores changes that are not newer.
    package mutating func apply(_ changes: SessionChanges) {
        guard changes.revision > revision else { return }
        precondition(!changes.isWhole, "a reset session is loaded again")
        record = changes.record
        revision = changes.revision
        for chunk in changes.chunks { insert(chunk) }
        guard let new = changes.partials else { return }
        (partials, rivals) = ([:], [:])
        for partial in new { setPartial(partial) }
    }

    /// Number of durable bytes: those of committed chunks and of the partials offered to native
    /// clients.
    package var receivedByteCount: Int64 {
        offeredPartials.reduce(committedByteCount) { $0 + $1.byteCount }
    }

    /// The partials that native clients can continue, by ascending index. A chunk's rival takes the
    /// place of a partial that is in doubt or missing.
    var offeredPartials: [PartialRecord] {
        let certain = partials.filter { !$0.value.isInDoubt }
        return certain.merging(rivals.filter { isUsable($0.value) }) { partial, _ in partial }
            .values.sorted { $0.index < $1.index }
    }

    /// False for a rival that is not shorter than its chunk, because the file size was declared
    /// later.
    func isUsable(_ rival: PartialRecord) -> Bool {
        record.layout.range(ofChunk: rival.index).map { rival.byteCount < $0.byteCount } ?? false
    }

    /// Offset after the contiguous committed chunks from the start.
    package var committedPrefixEnd: Int64 {
        guard let end = record.layout.range(ofChunk: committed.contiguousCount)?.start else {
            return record.fileSize ?? committedByteCount
        }
        return min(end, record.fileSize ?? end)
    }

    /// Offset at which an append continues: after the committed prefix and the partial that follows
    /// it.
    package var contiguousOffset: Int64 {
        committedPrefixEnd + (partials[committed.contiguousCount]?.byteCount ?? 0)
    }

    /// The chunk in which an append continues; nil when every byte was received.
    package var appendIndex: Int? {
        contiguousOffset == record.fileSize
            ? nil : record.layout.index(ofByteAt: contiguousOffset)
    }

    /// Offset after the last byte that a committed chunk or a partial claims.
    package var claimedEnd: Int64 {
        let layout = record.layout
        let chunkEnd = committed.ranges.last.flatMap { layout.range(ofChunk: $0.upperBound)?.end }
        let partialEnds = partials.values.map {
            (layout.range(ofChunk: $0.index)?.start ?? 0) + $0.byteCount
        }
        return max(chunkEnd ?? 0, partialEnds.max() ?? 0)
    }

    /// True when the size is known and every chunk is committed.
    package var isComplete: Bool { record.layout.chunkCount == committed.count }

    /// True when every byte was received, but the last chunk is still a partial. Its bytes arrived
    /// before the size was declared, or a process ended just before the commit.
    package var lacksOnlyLastCommit: Bool {
        record.fileSize == contiguousOffset && !isComplete
    }

    /// Runs of chunks that are not committed; empty while the size is unknown.
    package var missing: [ClosedRange<Int>] {
        record.layout.chunkCount.map { committed.missingRanges(of: $0) } ?? []
    }

    package mutating func insert(_ chunk: CommittedChunk) {
        partials[chunk.index] = nil
        rivals[chunk.index] = nil
        guard committed.insert(chunk.index) else { return }
        digests[chunk.index] = chunk.digest
        locations[chunk.index] = chunk.location
        committedByteCount += chunk.byteCount
    }

    package mutating func setPartial(_ partial: PartialRecord) {
        guard !committed.contains(partial.index) else { return }
        if partial.isRival {
            rivals[partial.index] = partial
        } else {
            partials[partial.index] = partial
        }
    }

    package mutating func removePartial(_ index: Int) { partials[index] = nil }
    package mutating func removeRival(_ index: Int) { rivals[index] = nil }
    package mutating func setExpiry(_ time: Timestamp) { record.expiresAt = time }
    package mutating func setState(_ state: SessionState) { record.state = state }

    package mutating func declareSize(_ byteCount: Int64) {
        precondition(record.fileSize == nil || record.fileSize == byteCount, "a size is set once")
        record.fileSize = byteCount
    }

    package mutating func finalize(digest: SHA256Digest, fileID: FileID) {
        record.state = .finalizing
        record.finalDigest = digest
        record.fileID = fileID
    }

    /// The wire form of the session's status.
    package var status: SessionStatus {
        SessionStatus(
            sessionId: record.id, state: record.state, fileName: record.fileName,
            fileSize: record.fileSize, chunkSize: record.chunkSize,
            totalChunks: record.layout.chunkCount, received: committed,
            receivedBytes: receivedByteCount,
            partialChunks: offeredPartials.map {
                PartialChunk(index: $0.index, receivedBytes: $0.byteCount)
            },
            expiresAt: record.expiresAt,
            fileHashSha256: record.finalDigest ?? record.declaredDigest,
            remoteFileId: record.state == .completed ? record.fileID : nil)
    }

    /// The wire form with the digests of committed chunks and partials. A client without records of
    /// its own compares its file with them.
    package var statusWithDigests: SessionStatus {
        var status = status
        status.receivedDigests = committed.indexes.compactMap { digests[$0] }
        status.partialChunks = offeredPartials.map {
            PartialChunk(
                index: $0.index, receivedBytes: $0.byteCount,
                sha256: SHA256Hasher(savedState: $0.hashState)?.digest())
        }
        return status
    }
}
