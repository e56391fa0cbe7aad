internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The staged bytes of one session.
///
/// They wait in a spool on this node until their chunk is complete, and then become one part. The
/// bytes of an interrupted chunk become a piece, from which any node can continue.
final class S3StagingArea: StagingArea {
    private struct State {
        /// Pieces whose bytes in the spool equal those in the bucket.
        var piecesAtHand: Set<Piece> = []
        var object: S3BlobReader?
        /// Copy sources of ranges.
        var copies: [(range: Range<Int64>, source: CopySource)] = []
        /// Ranges that are not read from the spool any more.
        var distrusted: [Range<Int64>] = []
        var isClosed = false
    }

    let key: StagingKey
    let store: S3Store
    let spool: Spool
    let uploads: MultipartUpload
    private let state = Mutex(State())

    init(_ key: StagingKey, store: S3Store) {
        self.key = key
        self.store = store
        spool = store.makeSpool()
        uploads = MultipartUpload(
            key, objectKey: store.keys.assembled(key), client: store.client,
            records: store.records)
    }

    func write(
        _ buffer: IOBuffer, at offset: Int64, isCached: Bool,
        after work: @escaping @Sendable () -> Void
    ) async throws {
        let range = offset..<offset + Int64(buffer.count)
        try checkOpen()
        state.withLock { state in
            state.piecesAtHand = state.piecesAtHand.filter { !$0.range.overlaps(range) }
        }
        try await store.onPool { [spool] in
            work()
            try spool.write(buffer.bytes, at: offset)
        }
    }

    /// Opens an area with a spool of its own. In the bucket there are no conflicts: a piece's key
    /// contains its digest.
    func openRival(_ range: ChunkRange, isKept: Bool) async throws -> any StagingArea {
        S3StagingArea(key, store: store)
    }

    func keepAsRival(_ range: ChunkRange, location: String?) async throws -> String? { location }

    func copySource() async throws -> CopySource? {
        do {
            return try await assembledReader(reaching: 0).copySource()
        } catch ByteStoreError.notAssembled {
            return nil
        }
    }

    func noteCopies(of source: CopySource, at offset: Int64) {
        state.withLock { state in
            state.copies.removeAll { $0.range.lowerBound == offset }
            state.copies.append((offset..<offset + source.byteCount, source))
        }
    }

    /// Returns an object that contains the bytes of the chunk, and their range in it.
    func copy(of range: ChunkRange) -> (source: CopySource, range: Range<Int64>)? {
        let wanted = range.start..<range.end
        let found = state.withLock { state in
            state.copies.last {
                $0.range.lowerBound <= wanted.lowerBound && $0.range.upperBound >= wanted.upperBound
            }
        }
        guard let found else { return nil }
        let start = wanted.lowerBound - found.range.lowerBound
        return (found.source, start..<start + range.byteCount)
    }

    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws {
        try checkOpen()
        let wanted = min(Int64(buffer.freeCount), byteCount)
        let range = offset..<offset + wanted
        let pin = spool.pin(range)
        defer { spool.unpin(pin) }
        let isDistrusted = state.withLock { $0.distrusted.contains { $0.overlaps(range) } }
        guard isDistrusted || !spool.holds(range) else {
            return try await store.onPool { [spool] in
                try buffer.fillFree(limit: Int(wanted)) { memory in
                    try spool.read(into: memory, at: offset)
                    return memory.count
                }
            }
        }
        let reader = try await assembledReader(reaching: range.upperBound)
        try await reader.read(into: buffer, at: offset, byteCount: byteCount)
    }

    /// The spool is no proof of what the bucket has: it may still hold a body that was refused, in
    /// the place of a chunk that another node has received since.
    func dropCached(_ byteCount: Int64, at offset: Int64) async {
        state.withLock { $0.distrusted.append(offset..<offset + byteCount) }
    }

    func release(below offset: Int64) async {
        // The spool closes files, which may take a moment. A closed store has no pool for it, but
        // nothing is lost: the files have no names.
        try? await store.onPool { [spool] in spool.release(0..<max(0, offset)) }
    }

    func close() async {
        let reader = state.withLock { state in
            state.isClosed = true
            return state.object.take()
        }
        await reader?.close()
        // A closed store has no pool for it, as in `release(below:)`.
        try? await store.onPool { [spool] in spool.close() }
    }

    func checkOpen() throws(ByteStoreError) {
        guard !state.withLock({ $0.isClosed }) else {
            throw .failed("the staging area is closed")
        }
    }

    /// Whether the spool holds the piece's bytes, and no others in their place.
    func hasAtHand(_ piece: Piece) -> Bool {
        state.withLock { $0.piecesAtHand.contains(piece) } && spool.holds(piece.range)
    }

    func noteAtHand(_ piece: Piece) {
        state.withLock { _ = $0.piecesAtHand.insert(piece) }
    }

    /// Returns the reader of the assembled object. All reads share it, so that they stream.
    private func assembledReader(reaching end: Int64) async throws -> S3BlobReader {
        if let reader = state.withLock({ $0.object }) { return reader }
        guard case .object(let object) = StagingState(try await store.records.state(of: key))
        else { throw ByteStoreError.notAssembled }
        let found = try await store.seeing { [store] () async throws(S3Failure) in
            try await store.client.headObject(object)
        }
        guard let found, found.byteCount >= end else { throw ByteStoreError.notFound }
        let reader = S3BlobReader(
            object, byteCount: found.byteCount, tag: found.tag, client: store.client)
        return state.withLock { state in
            if let other = state.object { return other }
            state.object = reader
            return reader
        }
    }
}
