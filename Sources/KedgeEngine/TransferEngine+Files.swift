internal import KedgeFiles
package import KedgeModel

/// A file that is open for reading.
package struct OpenedFile: Sendable {
    package let record: FileRecord
    package let reader: any BlobReader
}

extension TransferEngine {
    /// Returns the file's record.
    ///
    /// - Throws: `FILE_NOT_FOUND`, `FILE_GONE` after its deletion, `FILE_DAMAGED` while its bytes
    ///   are known to be wrong or missing.
    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord {
        try await translating {
            guard let record = try await context.metadata.file(id, owner: owner) else {
                throw EngineError(.fileNotFound)
            }
            guard record.deletedAt == nil else { throw EngineError(.fileGone) }
            guard record.damagedAt == nil else { throw EngineError(.fileDamaged) }
            return record
        }
    }

    /// Opens the bytes of a file. They stay readable until closed, even if the file is deleted
    /// meanwhile.
    ///
    /// - Throws: `FILE_GONE`; `FILE_DAMAGED` when the blob is missing or has the wrong size. The
    ///   file is then marked as damaged, and the scrub looks for another copy.
    package func openFile(_ record: FileRecord) async throws -> OpenedFile {
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
                try await reportDamage(of: now)
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

    /// Returns a URL that serves the file without credentials for some minutes; nil when this
    /// service sends the bytes.
    ///
    /// - Parameter fields: Header fields for the response at that URL.
    package func publicURL(
        of record: FileRecord, responseFields fields: [String: String]
    ) async throws -> String? {
        try await translating {
            try await context.bytes.publicURL(of: record.blob, responseFields: fields)
        }
    }

    /// Returns files of an owner, newest first.
    ///
    /// - Parameter onlyDamaged: Whether to return only files that are known to be damaged.
    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int, onlyDamaged: Bool = false
    ) async throws -> [FileRecord] {
        try await translating {
            onlyDamaged
                ? try await context.metadata.damagedFiles(of: owner, after: cursor, limit: limit)
                : try await context.metadata.files(of: owner, after: cursor, limit: limit)
        }
    }

    /// Returns the digests of a file's chunks in order.
    package func chunkDigests(of record: FileRecord) async throws -> [SHA256Digest] {
        try await translating {
            do {
                return try await context.metadata.chunkDigests(of: record)
            } catch MetadataError.notFound {
                throw EngineError(.fileGone)
            }
        }
    }

    /// Deletes a file. Requests for it fail with `FILE_GONE` from now on. Its bytes are removed
    /// with the last file that has them. Idempotent.
    ///
    /// - Throws: `FILE_NOT_FOUND`.
    package func deleteFile(_ id: FileID, owner: OwnerID) async throws {
        try await translating {
            guard try await context.metadata.file(id, owner: owner) != nil else {
                throw EngineError(.fileNotFound)
            }
            try await context.metadata.deleteFile(id, owner: owner, at: context.clock.now())
        }
        await collectGarbageSoon()
    }

    /// Creates a file from one body: the short way for small files. Nothing is kept when it fails.
    ///
    /// - Parameters:
    ///   - expected: SHA-256 that the file must have.
    ///   - checksum: A further checksum that the body must have.
    /// - Throws: The errors of creating, appending and finalizing.
    package func ingest(
        _ new: NewSession, owner: OwnerID, expecting expected: SHA256Digest?,
        checksum: AppendChecksum? = nil, body: some ByteBody
    ) async throws -> FileRecord {
        // A body without a place is refused before anything is written for it.
        let id = try await admittingWrite(of: body, to: nil, owner: owner, isEvictable: false) {
            place in
            let id = try await createSession(new, owner: owner).sessionId
            try await givingUp(id, owner: owner) {
                var put = AppendPut(offset: 0, checksum: checksum, completes: true)
                put.isResumable = false
                _ = try await registry.withSession(id, owner: owner) { session in
                    try await sessionWriter.append(put, to: session, in: place, body: body)
                }
            }
            return id
        }
        // Waits for the file, because the client has no id to ask for it again.
        return try await givingUp(id, owner: owner) {
            try await finish(
                id, owner: owner, expecting: expected, timeout: .seconds(24 * 3600))
        }
    }

    /// Cancels the session when the closure throws.
    private func givingUp<Result>(
        _ id: SessionID, owner: OwnerID, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            await giveUp(id, owner: owner)
            throw error
        }
    }
}

extension TransferEngine {
    /// Reads the next bytes of an open file into a shared buffer and lends them to the closure.
    ///
    /// - Parameters:
    ///   - limit: Maximum number of bytes to read; at least one is read.
    ///   - body: Copies the bytes that it needs; the buffer is reused afterwards.
    package func read<Result>(
        _ file: OpenedFile, at offset: Int64, upTo limit: Int64,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) async throws -> Result {
        try await translating {
            guard !isEnding else { throw EngineError(.unavailable, "The service is stopping.") }
            transferClock.tick()
            let buffer = context.buffers.take()
            defer { context.buffers.give(buffer) }
            try await file.reader.read(into: buffer, at: offset, byteCount: limit)
            return try body(buffer.bytes)
        }
    }

    /// Prefetches the next bytes of an open file, so that sending them does not wait for a disk.
    package func prefetch(_ file: OpenedFile, at offset: Int64, byteCount: Int64) async throws {
        try await translating {
            guard !isEnding else { throw EngineError(.unavailable, "The service is stopping.") }
            transferClock.tick()
            try await file.reader.prefetch(byteCount, at: offset)
        }
    }

    /// Returns a descriptor from which the kernel can send an open file; nil when the bytes are not
    /// in a local file. The caller closes it.
    package func duplicateDescriptor(of file: OpenedFile) async throws -> Int32? {
        try await translating { try await file.reader.duplicateDescriptor() }
    }
}
