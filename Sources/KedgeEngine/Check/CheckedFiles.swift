internal import KedgeModel

/// Bytes of which each staging area and each blob is one file, used by this process alone.
package protocol CheckedFiles: CheckedBytes {
    /// Size of the file; nil when there is none.
    func byteCount(of bytes: StoredBytes) async throws -> Int64?
    /// Opens the file for reading.
    ///
    /// - Throws: `notFound` when there is none.
    func open(_ bytes: StoredBytes) async throws -> any BlobReader
}

extension CheckedFiles {
    package var isShared: Bool { false }

    package func hasEntry(_ bytes: StoredBytes) async throws -> Bool {
        try await byteCount(of: bytes) != nil
    }

    package func byteCount(of blob: BlobName) async throws -> Int64? {
        try await byteCount(of: .blob(blob.digest))
    }

    package func open(_ blob: BlobName) async throws -> any BlobReader {
        try await open(.blob(blob.digest))
    }

    package func staging(of session: SessionRecord) async throws -> any CheckedStaging {
        StagingFile(
            session: session, byteCount: try await byteCount(of: .staging(session.stagingKey)),
            files: self)
    }
}

/// A staging area in one file, in which every byte is at its offset.
private struct StagingFile: CheckedStaging {
    let session: SessionRecord
    /// Nil when there is no file.
    let byteCount: Int64?
    let files: any CheckedFiles

    var isPresent: Bool { byteCount != nil }
    var isListed: Bool { true }

    func missing(of chunks: [CommittedChunk]) async throws -> ChunkSet {
        ChunkSet(chunks.lazy.filter { !covers($0.index, $0.byteCount) }.map(\.index))
    }

    func missing(of partials: [PartialRecord]) async throws -> ChunkSet {
        ChunkSet(partials.lazy.filter { !covers($0.index, $0.byteCount) }.map(\.index))
    }

    func open(first: CommittedChunk?) async throws -> (any BlobReader)? {
        guard let byteCount, byteCount > 0 else { return nil }
        return try await files.open(.staging(session.stagingKey))
    }

    private func covers(_ index: Int, _ count: Int64) -> Bool {
        (session.layout.range(ofChunk: index)?.start ?? 0) + count <= byteCount ?? 0
    }
}
