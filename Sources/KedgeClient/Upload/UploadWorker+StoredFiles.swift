internal import KedgeModel

/// Uploads without sending a byte: the server has the bytes of the file from an earlier upload of
/// the same user.
extension UploadWorker {
    /// Compares the file with those that the server offers for the empty session, chunk by chunk as
    /// long as one agrees, and completes the upload if one agrees to the end.
    ///
    /// Other bytes of the same size cost the hash of one chunk in most cases, and the hash of the
    /// whole file continues from there.
    ///
    /// - Returns: False if the bytes have to be sent.
    func completeWithStoredFile() async throws -> Bool {
        let offered = storedFiles
        storedFiles = []
        guard !offered.isEmpty, isSessionOpen, confirmed.count == 0, partials.isEmpty else {
            return false
        }
        defer { context.rate.comparedByteCount = nil }
        let first = try await comparedDigest(ofChunk: 0)
        var candidates: [(file: StoredFile, digests: [SHA256Digest])] = []
        for file in offered where file.firstChunkSha256 == first {
            guard let digests = try await chunkDigests(of: file), digests.first == first else {
                continue
            }
            candidates.append((file, digests))
        }
        for index in 1..<max(1, upload.layout.chunkCount ?? 0) {
            guard !candidates.isEmpty else { return false }
            try Task.checkCancellation()
            let digest = try await comparedDigest(ofChunk: index)
            candidates.removeAll { $0.digests[index] != digest }
        }
        let digest = try await wholeFile.digest(ofFile: upload.identity.byteCount)
        guard candidates.contains(where: { $0.file.fileHashSha256 == digest }) else { return false }
        // If the server has no longer the bytes, it reports missing chunks, which are then sent.
        return try await finalize()
    }

    private func comparedDigest(ofChunk index: Int) async throws -> SHA256Digest {
        guard let range = upload.layout.range(ofChunk: index) else {
            throw trouble(.reconcile, .protocolViolation)
        }
        let digest = try await source.prepare(index, range: range, feeding: wholeFile).digest
        context.rate.comparedByteCount = range.end
        return digest
    }

    /// Returns the digests of a file's chunks; nil if the file is gone or has another layout.
    private func chunkDigests(of file: StoredFile) async throws -> [SHA256Digest]? {
        guard let chunkCount = upload.layout.chunkCount else { return nil }
        let api = context.api
        let gone: Set<ErrorCode> = [.fileNotFound, .fileGone, .fileDamaged]
        do {
            let chunks = try await context.coordinator.retrying(surfacing: gone) {
                try await api.fileChunks(file.remoteFileId, chunkCount: chunkCount).value
            }
            guard chunks.chunkSize == upload.chunkSize, chunks.sha256.count == chunkCount else {
                return nil
            }
            return chunks.sha256
        } catch let failure as RequestFailure where gone.contains(failure.code) {
            return nil
        }
    }
}
