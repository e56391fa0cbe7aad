internal import HTTPTypes
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

extension DownloadWorker {
    /// Fetches the whole file from its first byte, until one answer arrives complete. Serves
    /// servers without ranges, or without a strong validator to tie ranges together.
    func fetchWhole() async throws -> (temp: TempFile, digest: SHA256Digest, size: Int64) {
        let inspected = remote
        while true {
            try Task.checkCancellation()
            let temp = try await makeTempFile(size: 0)
            do {
                let hasher = try await fetchWholeOnce(into: temp, inspected: inspected)
                return (temp, hasher.digest(), hasher.byteCount)
            } catch let failure as RequestFailure {
                // No byte can be kept, so every drop counts against the budget.
                try await backOff(after: failure, chunk: nil)
                try await reportRestart(after: failure)
            }
        }
    }

    private func fetchWholeOnce(
        into temp: TempFile, inspected: RemoteFile
    ) async throws -> SHA256Hasher {
        let response = try await fetcher.get(remote.url)
        guard response.status == 200 else {
            throw await fetcher.failure(of: response, to: download.reference)
        }
        let answer = fetcher.answer(of: response)
        try await context.coordinator.noteAnswer()
        let fields = response.headerFields
        if let failure = fetcher.codingFailure(of: response) { throw failure }
        // An answer without a length may be cut short unnoticed. The inspected length then counts,
        // if the version is the same.
        let isSameVersion = RangeValidator(fields).text == inspected.validator.text
        let announced =
            fields[.contentLength].flatMap { WireInteger.parse($0) }
            ?? (isSameVersion ? inspected.byteCount : nil)
        try await adoptHead(fields, byteCount: announced, answer: answer)
        if let announced {
            let (files, path) = (files, TempFile.directory(of: download.tempPath))
            try await context.onDisk("check space", .downloadFolder) {
                try TempFile.requireSpace(announced, at: path, files: files)
            }
        }
        var writer = BodyWriter(
            file: temp.file, start: 0, buffers: buffers, context: context)
        do {
            var receivedCount: Int64 = 0
            while let piece = try await response.body.next() {
                receivedCount += Int64(piece.count)
                if let announced, receivedCount > announced {
                    // Dropping the body cancels the exchange: it may never end.
                    throw Self.otherLength(answer)
                }
                try await writer.append(piece)
            }
        } catch let error as TransportError {
            throw RequestFailure(error, operation: "get file", answer: answer)
        }
        try await writer.flush()
        guard announced == nil || announced == writer.writtenByteCount else {
            throw Self.otherLength(answer)
        }
        return writer.progress.chunk
    }

    private static func otherLength(_ answer: ServerAnswer) -> RequestFailure {
        RequestFailure(
            .lengthMismatch, operation: "get file", answer: answer,
            transport: TransportError(.dropped, detail: "the length is not the announced one"))
    }

    /// Adopts the head of an answer in place of all earlier metadata: one answer is one version.
    private func adoptHead(
        _ fields: HTTPFields, byteCount: Int64?, answer: ServerAnswer
    ) async throws {
        remote.byteCount = byteCount
        remote.validator = RangeValidator(fields)
        // That of a Kedge server's file is in its metadata.
        if download.reference.isURL { remote.modified = RemoteFile.modified(fields) }
        if let digest = fields[.reprDigest].flatMap({ DigestHeader.parseRFC9530($0) }) {
            remote.sha256 = digest
        }
        try await context.store.setRemote(
            remote, chunkSize: download.chunkSize, restarts: false, answer: answer,
            of: context.lease)
        download.expectedSize = byteCount
        download.validator = remote.validator
        if !download.isHashPinned { download.expectedHash = remote.sha256 }
    }
}
