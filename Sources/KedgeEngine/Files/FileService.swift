internal import KedgeFiles
internal import KedgeModel

/// A file that is open for reading.
package struct OpenedFile: Sendable {
    package let record: FileRecord
    package let reader: any BlobReader
}

/// The files: their records, and reading their bytes.
final class FileService: Sendable {
    private let context: EngineContext
    private let rows: any FileStore & ScrubRecords
    private let digestLocks: KeyedLock<SHA256Digest>
    private let transferClock: TransferClock
    private let damageReports: DamageReports
    private let openBlobs = OpenBlobs()
    let sentBytes = ByteCounter()

    init(
        context: EngineContext, digestLocks: KeyedLock<SHA256Digest>, transferClock: TransferClock,
        damageReports: DamageReports
    ) {
        self.context = context
        rows = context.metadata
        self.digestLocks = digestLocks
        self.transferClock = transferClock
        self.damageReports = damageReports
    }

    /// Locations of blobs that readers of this node have open.
    var openLocations: [String] { openBlobs.locations }

    /// Returns the file's record, unless the file is deleted or damaged.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord {
        try await translating {
            guard let record = try await rows.file(id, owner: owner) else {
                throw EngineError(.fileNotFound)
            }
            guard record.deletedAt == nil else { throw EngineError(.fileGone) }
            guard record.damagedAt == nil else { throw EngineError(.fileDamaged) }
            return record
        }
    }

    /// Opens the bytes of a file; marks the file as damaged when it has none.
    func openFile(_ record: FileRecord) async throws -> OpenedFile {
        try await translating {
            if let reader = try await openWhole(record) {
                return OpenedFile(record: record, reader: reader)
            }
            // Not damage if the file was deleted, or its blob has moved, since the record was read.
            // The lock waits for an upload of the same bytes that replaces the blob.
            return try await digestLocks.withLock(record.digest) {
                let now = try await file(record.id, owner: record.owner)
                if let reader = try await openWhole(now) {
                    return OpenedFile(record: now, reader: reader)
                }
                try await damageReports.reportDamage(of: now)
                throw EngineError(.fileDamaged)
            }
        }
    }

    /// Opens the blob of a file; returns nil when there is none, or one of another size.
    func openWhole(_ record: FileRecord) async throws -> (any BlobReader)? {
        do {
            let reader = try await context.bytes.openBlob(record.blob)
            guard reader.byteCount == record.byteCount else {
                await reader.close()
                return nil
            }
            openBlobs.add(reader, at: record.location)
            return reader
        } catch ByteStoreError.notFound {
            return nil
        }
    }

    /// Returns a URL that serves the file without credentials; nil when this service sends it.
    func publicURL(
        of record: FileRecord, responseFields fields: [String: String]
    ) async throws -> String? {
        try await translating {
            try await context.bytes.publicURL(of: record.blob, responseFields: fields)
        }
    }

    /// Returns files of an owner, newest first.
    func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int, onlyDamaged: Bool = false
    ) async throws -> [FileRecord] {
        try await translating {
            onlyDamaged
                ? try await rows.damagedFiles(of: owner, after: cursor, limit: limit)
                : try await rows.files(of: owner, after: cursor, limit: limit)
        }
    }

    /// Returns files of an owner whose path has the prefix, by path.
    func files(
        of owner: OwnerID, under prefix: PathPrefix, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await translating {
            try await rows.files(of: owner, under: prefix, after: cursor, limit: limit)
        }
    }

    /// Returns the digests of a file's chunks in order.
    func chunkDigests(of record: FileRecord) async throws -> [SHA256Digest] {
        try await translating {
            do {
                return try await rows.chunkDigests(of: record)
            } catch MetadataError.notFound {
                throw EngineError(.fileGone)
            }
        }
    }

    /// Deletes a file; the caller removes the garbage. Idempotent.
    func deleteFile(_ id: FileID, owner: OwnerID) async throws {
        try await translating {
            guard try await rows.file(id, owner: owner) != nil else {
                throw EngineError(.fileNotFound)
            }
            try await rows.deleteFile(id, owner: owner, at: context.clock.now())
        }
    }

    /// Reads the next bytes of an open file into a shared buffer and lends them to the closure.
    func read<Result>(
        _ file: OpenedFile, at offset: Int64, upTo limit: Int64,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) async throws -> Result {
        try await translating {
            guard !context.isEnding else {
                throw EngineError(.unavailable, "The service is stopping.")
            }
            transferClock.tick()
            let buffer = context.buffers.take()
            defer { context.buffers.give(buffer) }
            try await file.reader.read(into: buffer, at: offset, byteCount: limit)
            return try body(buffer.bytes)
        }
    }

    /// Prefetches the next bytes of an open file.
    func prefetch(_ file: OpenedFile, at offset: Int64, byteCount: Int64) async throws {
        try await translating {
            guard !context.isEnding else {
                throw EngineError(.unavailable, "The service is stopping.")
            }
            transferClock.tick()
            try await file.reader.prefetch(byteCount, at: offset)
        }
    }

    /// Returns a descriptor from which the kernel can send an open file; nil without a local file.
    func duplicateDescriptor(of file: OpenedFile) async throws -> Int32? {
        try await translating { try await file.reader.duplicateDescriptor() }
    }
}
