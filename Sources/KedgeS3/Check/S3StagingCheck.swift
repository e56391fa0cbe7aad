internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// Checks the staged bytes of one session in the bucket.
struct S3StagingCheck: CheckedStaging {
    /// The location in which the chunks are collected.
    enum Collector: Sendable {
        /// Nothing was begun, or it is gone.
        case nothing
        case upload(UploadReference)
        /// An upload in a store that does not list parts.
        case unlisted
        /// The chunks are assembled into one object.
        case object(key: String, ObjectHead)
    }

    let session: SessionRecord
    let place: S3Inspection
    let collector: Collector

    init(of session: SessionRecord, in place: S3Inspection) async throws {
        self.session = session
        self.place = place
        let assembled = place.store.keys.assembled(session.stagingKey)
        switch StagingState(try await place.store.records.state(of: session.stagingKey)) {
        case .upload(let upload): collector = try await place.collector(upload, of: assembled)
        case .object(let object): collector = try await place.collector(object)
        case nil: collector = .nothing
        }
    }

    var isPresent: Bool { if case .nothing = collector { false } else { true } }
    var isListed: Bool { if case .unlisted = collector { false } else { true } }

    func missing(of chunks: [CommittedChunk]) async throws -> ChunkSet {
        guard let first = chunks.first, let last = chunks.last else { return ChunkSet() }
        let found = try await collected(first.index...last.index)
        var missing = ChunkSet()
        for chunk in chunks where try await !isThere(chunk, found) { missing.insert(chunk.index) }
        return missing
    }

    func missing(of partials: [PartialRecord]) async throws -> ChunkSet {
        var missing = ChunkSet()
        for partial in partials where try await !isThere(partial) { missing.insert(partial.index) }
        return missing
    }

    func open(first: CommittedChunk?) async throws -> (any BlobReader)? {
        if case .object(let key, let head) = collector {
            return place.reader(of: key, head)
        }
        guard let first, case .object = ChunkLocation(first.location) else { return nil }
        let object = place.store.keys.whole(session.stagingKey, first.digest)
        guard let head = try await place.head(of: object) else { throw ByteStoreError.notFound }
        return place.reader(of: object, head)
    }

    // MARK: One chunk

    /// The collected bytes of some chunks.
    private enum Collected {
        case parts([Int: UploadedPart])
        /// All bytes of the file up to this offset.
        case bytes(until: Int64)
    }

    private func collected(_ indexes: ClosedRange<Int>) async throws -> Collected {
        switch collector {
        case .nothing: return .bytes(until: 0)
        case .unlisted: return .bytes(until: .max)
        case .object(_, let head): return .bytes(until: head.byteCount)
        case .upload(let upload):
            let assembled = place.store.keys.assembled(session.stagingKey)
            if let parts = try await place.parts(of: assembled, upload, indexes) {
                return .parts(parts)
            }
            // The upload was completed in the meantime.
            return .bytes(until: try await place.head(of: assembled)?.byteCount ?? 0)
        }
    }

    private func isThere(_ chunk: CommittedChunk, _ collected: Collected) async throws -> Bool {
        switch (ChunkLocation(chunk.location), collected) {
        case (nil, _): return false
        case (.object, _):
            let object = place.store.keys.whole(session.stagingKey, chunk.digest)
            return try await place.head(of: object)?.byteCount == chunk.byteCount
        case (.part, .bytes(let end)): return start(of: chunk.index) + chunk.byteCount <= end
        case (.part(let tag), .parts(let parts)):
            guard let part = parts[chunk.index + 1], part.byteCount == chunk.byteCount else {
                return false
            }
            // A repeated part may have a different tag although its bytes are equal.
            return part.tag == tag || part.checksum == Base64.encode(chunk.digest.bytes)
        }
    }

    private func isThere(_ partial: PartialRecord) async throws -> Bool {
        let start = start(of: partial.index)
        guard let list = PieceList(partial.location, from: start),
            list.end ?? 0 >= start + partial.byteCount
        else { return false }
        for piece in list.pieces {
            let object = place.store.keys.piece(piece, ofChunk: partial.index, session.stagingKey)
            guard try await place.head(of: object)?.byteCount == piece.byteCount else {
                return false
            }
        }
        return true
    }

    private func start(of index: Int) -> Int64 {
        session.layout.range(ofChunk: index)?.start ?? 0
    }
}

extension S3Inspection {
    fileprivate func reader(of object: String, _ head: ObjectHead) -> S3BlobReader {
        S3BlobReader(object, byteCount: head.byteCount, tag: head.tag, client: store.client)
    }

    fileprivate func collector(_ object: String) async throws -> S3StagingCheck.Collector {
        guard let head = try await head(of: object) else { return .nothing }
        return .object(key: object, head)
    }

    /// Returns the state of an upload. It may be complete although a crash prevented its record.
    fileprivate func collector(
        _ upload: UploadReference, of object: String
    ) async throws -> S3StagingCheck.Collector {
        do {
            guard try await parts(of: object, upload, 0...0) != nil else {
                return try await collector(object)
            }
            return .upload(upload)
        } catch is PartsUnlisted {
            return .unlisted
        }
    }

    /// Lists the parts of these chunks; nil when there is no such upload.
    ///
    /// - Throws: ``PartsUnlisted``, ``ByteStoreError``, `CancellationError`.
    fileprivate func parts(
        of object: String, _ upload: UploadReference, _ indexes: ClosedRange<Int>
    ) async throws -> [Int: UploadedPart]? {
        var found: [Int: UploadedPart] = [:]
        var last = indexes.lowerBound
        while true {
            guard let page = try await partPage(of: object, upload, after: last) else { return nil }
            for part in page.parts { found[part.number] = part }
            guard let next = page.next, next > last, next <= indexes.upperBound else {
                return found
            }
            last = next
        }
    }

    private func partPage(
        of object: String, _ upload: UploadReference, after number: Int
    ) async throws -> (parts: [UploadedPart], next: Int?)? {
        let page: Result<(parts: [UploadedPart], next: Int?), S3Failure> = try await seeing {
            () async throws(S3Failure) in
            do throws(S3Failure) {
                return .success(
                    try await store.client.listParts(of: object, upload.id, after: number))
            } catch {
                guard error.isAbsence || error.isUnsupported else { throw error }
                return .failure(error)
            }
        }
        switch page {
        case .success(let page): return page
        case .failure(let failure):
            if failure.isUnsupported { throw PartsUnlisted() }
            return nil
        }
    }
}

/// An error for a store that does not list parts.
private struct PartsUnlisted: Error {}
