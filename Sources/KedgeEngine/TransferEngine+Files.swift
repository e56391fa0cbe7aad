package import KedgeModel

extension TransferEngine {
    /// Returns the file's record.
    ///
    /// - Throws: `FILE_NOT_FOUND`, `FILE_GONE` after its deletion, `FILE_DAMAGED` while its bytes
    ///   are known to be wrong or missing.
    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord {
        try await fileService.file(id, owner: owner)
    }

    /// Opens the bytes of a file. They stay readable until closed, even if the file is deleted
    /// meanwhile.
    ///
    /// - Throws: `FILE_GONE`; `FILE_DAMAGED` when the blob is missing or has the wrong size. The
    ///   file is then marked as damaged, and the scrub looks for another copy.
    package func openFile(_ record: FileRecord) async throws -> OpenedFile {
        try await fileService.openFile(record)
    }

    /// Returns a URL that serves the file without credentials for some minutes; nil when this
    /// service sends the bytes.
    ///
    /// - Parameter fields: Header fields for the response at that URL.
    package func publicURL(
        of record: FileRecord, responseFields fields: [String: String]
    ) async throws -> String? {
        try await fileService.publicURL(of: record, responseFields: fields)
    }

    /// Returns files of an owner, newest first.
    ///
    /// - Parameter onlyDamaged: Whether to return only files that are known to be damaged.
    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int, onlyDamaged: Bool = false
    ) async throws -> [FileRecord] {
        try await fileService.files(
            of: owner, after: cursor, limit: limit, onlyDamaged: onlyDamaged)
    }

    /// Returns files of an owner whose path has the prefix, by path; of several with the same path
    /// the newest first.
    package func files(
        of owner: OwnerID, under prefix: PathPrefix, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await fileService.files(of: owner, under: prefix, after: cursor, limit: limit)
    }

    /// Returns the digests of a file's chunks in order.
    package func chunkDigests(of record: FileRecord) async throws -> [SHA256Digest] {
        try await fileService.chunkDigests(of: record)
    }

    /// Deletes a file. Requests for it fail with `FILE_GONE` from now on. Its bytes are removed
    /// with the last file that has them. Idempotent.
    ///
    /// - Throws: `FILE_NOT_FOUND`.
    package func deleteFile(_ id: FileID, owner: OwnerID) async throws {
        try await fileService.deleteFile(id, owner: owner)
        await garbageCollector.collectGarbageSoon()
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
        let ingest = FileIngest(sessions: sessions, uploads: uploads, finalizer: finalizer)
        return try await ingest.run(
            new, owner: owner, expecting: expected, checksum: checksum, body: body)
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
        try await fileService.read(file, at: offset, upTo: limit, body)
    }

    /// Prefetches the next bytes of an open file, so that sending them does not wait for a disk.
    package func prefetch(_ file: OpenedFile, at offset: Int64, byteCount: Int64) async throws {
        try await fileService.prefetch(file, at: offset, byteCount: byteCount)
    }

    /// Returns a descriptor from which the kernel can send an open file; nil when the bytes are not
    /// in a local file. The caller closes it.
    package func duplicateDescriptor(of file: OpenedFile) async throws -> Int32? {
        try await fileService.duplicateDescriptor(of: file)
    }
}
