internal import KedgeModel
internal import Logging

/// Limit of files to compare with, whatever the server offers.
private let maxStoredFileCount = 4
/// Limit of requests for the digests of one stored file.
private let maxRequestCount = 3
/// Longest wait between two of them.
private let maxRequestDelay = Duration.seconds(10)
/// Limit of sessions that are finalized with stored bytes: the first one may be lost meanwhile.
private let maxFinalizeCount = 2

/// Uploads without sending a byte: the server has the bytes of the file from an earlier upload of
/// the same user.
///
/// An offer is optional: no answer to it fails the upload, whose bytes are sent instead.
extension UploadWorker {
    /// Compares the file with those that the server offers for the empty session, chunk by chunk as
    /// long as one agrees, and completes the upload if one agrees to the end.
    ///
    /// Other bytes of the same size cost the hash of one chunk in most cases, and the hash of the
    /// whole file continues from there. Compares only once in a run: a server that keeps losing
    /// sessions does not make the client read the file again and again.
    ///
    /// - Returns: False if the bytes have to be sent.
    func completeWithStoredFile() async throws -> Bool {
        let offered = storedFiles
        storedFiles = []
        guard !offered.isEmpty, isSessionOpen, confirmed.count == 0, partials.isEmpty else {
            return false
        }
        if !hasComparedStoredFiles {
            hasComparedStoredFiles = true
            storedDigest = try await digest(ofStoredFileAmong: offered)
        } else if !offered.contains(where: { $0.fileHashSha256 == storedDigest }) {
            return false
        }
        // In another session after a comparison, only once, and only if the file need not be read
        // again.
        guard storedDigest != nil, storedFinalizeCount < maxFinalizeCount,
            wholeFile.saved.offsetBytes == upload.identity.byteCount
        else { return false }
        storedFinalizeCount += 1
        return try await finalizeStoredFile()
    }

    /// Returns the SHA-256 of the offered file that has the same bytes; nil if none has.
    private func digest(ofStoredFileAmong offered: [StoredFile]) async throws -> SHA256Digest? {
        defer { context.rate.comparedByteCount = nil }
        let first = try await comparedDigest(ofChunk: 0)
        var alike = offered.filter { $0.firstChunkSha256 == first }
        if alike.isEmpty, offered.count >= maxStoredFileCount {
            // There may be more files of this size.
            alike = try await filesThatBegin(with: first)
        }
        var candidates = try await self.candidates(among: alike, startingWith: first)
        for index in 1..<max(1, upload.layout.chunkCount ?? 0) {
            guard !candidates.isEmpty else { return nil }
            try Task.checkCancellation()
            let digest = try await comparedDigest(ofChunk: index)
            candidates = candidates.filter { $0.value[index] == digest }
        }
        let known = Set(candidates.keys)
        // Each list may take megabytes.
        candidates = [:]
        guard !known.isEmpty else { return nil }
        let digest = try await wholeFile.digest(ofFile: upload.identity.byteCount)
        return known.contains(digest) ? digest : nil
    }

    private func comparedDigest(ofChunk index: Int) async throws -> SHA256Digest {
        guard let range = upload.layout.range(ofChunk: index) else {
            throw trouble(.reconcile, .protocolViolation)
        }
        let digest = try await source.prepare(index, range: range, feeding: wholeFile).digest
        context.rate.comparedByteCount = range.end
        return digest
    }

    /// Asks for files whose first chunk has this digest; an older server offers any.
    private func filesThatBegin(with first: SHA256Digest) async throws -> [StoredFile] {
        guard let id = upload.sessionID else { return [] }
        do {
            let status = try await api.sessionStatus(
                id, chunkCount: upload.layout.chunkCount ?? 0, storedFiles: .beginning(with: first)
            ).value
            return (status.storedFiles ?? []).filter { $0.firstChunkSha256 == first }
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            noteUnusable(failure)
            return []
        }
    }

    /// Requests the digests of the chunks of the first few files.
    ///
    /// - Returns: The digests by the SHA-256 of the whole file.
    private func candidates(
        among files: [StoredFile], startingWith first: SHA256Digest
    ) async throws -> [SHA256Digest: [SHA256Digest]] {
        var candidates: [SHA256Digest: [SHA256Digest]] = [:]
        var ids: Set<FileID> = []
        for file in files {
            guard ids.count < maxStoredFileCount else { break }
            // Files with one SHA-256 have the same chunks.
            guard ids.insert(file.remoteFileId).inserted, candidates[file.fileHashSha256] == nil
            else { continue }
            do {
                guard let digests = try await chunkDigests(of: file), digests.first == first
                else { continue }
                candidates[file.fileHashSha256] = digests
            } catch let failure as RequestFailure {
                noteUnusable(failure)
                // Without an answer, the other files have none either.
                if failure.isOutage { break }
            }
        }
        return candidates
    }

    /// Returns the digests of a file's chunks; nil if the file has another layout.
    ///
    /// - Throws: ``RequestFailure``; `CancellationError`.
    private func chunkDigests(of file: StoredFile) async throws -> [SHA256Digest]? {
        guard let chunkCount = upload.layout.chunkCount else { return nil }
        var requestCount = 0
        while true {
            try Task.checkCancellation()
            requestCount += 1
            do {
                let chunks = try await api.fileChunks(
                    file.remoteFileId, chunkCount: chunkCount
                ).value
                let isAlike =
                    chunks.chunkSize == upload.chunkSize && chunks.sha256.count == chunkCount
                return isAlike ? chunks.sha256 : nil
            } catch let failure as RequestFailure {
                if failure.isCanceled { throw CancellationError() }
                guard failure.isRetryable, requestCount < maxRequestCount else { throw failure }
                var generator = context.environment.makeGenerator()
                let delay = context.configuration.retry.delay(
                    afterFailures: requestCount, retryAfter: failure.retryAfter, using: &generator)
                try await context.environment.sleep(min(delay, maxRequestDelay))
            }
        }
    }

    /// Finalizes the empty session. If the server has no longer the bytes, it reports missing
    /// chunks, which are then sent.
    ///
    /// - Throws: ``UploadTrouble`` after a refusal: another session gets the bytes.
    private func finalizeStoredFile() async throws -> Bool {
        do {
            return try await finalize()
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            // The server is away for longer than the retries allow, whatever is sent.
            if failure.isOutage { throw failure }
            noteUnusable(failure)
            storedDigest = nil
            throw UploadTrouble(remedy: .newUpload(adopt: nil), failure: failure)
        } catch let trouble as UploadTrouble where trouble.remedy == .fromScratch {
            noteUnusable(trouble.failure)
            storedDigest = nil
            // No byte was sent that could be wrong, so this is no integrity failure.
            throw UploadTrouble(remedy: .newUpload(adopt: nil), failure: trouble.failure)
        }
    }

    private func noteUnusable(_ failure: RequestFailure) {
        context.logger.info(
            "stored file unusable",
            metadata: [
                "transfer": "\(context.lease.id)", "code": "\(failure.code.rawValue)",
                "error": "\(String(reflecting: failure))",
            ])
    }
}
