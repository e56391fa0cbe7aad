internal import KedgeClient
internal import KedgeModel

/// Starts the upload of one file, unless the server has it.
struct UploadStart: Sendable {
    let client: TransferClient
    let options: UploadOptions
    let waiting: WaitOptions
    let checking: ContainerChecking
    let sendsAgain: Bool
    /// The list of the files on the server; nil for files without a path.
    let folder: SharedServerFolder?

    func callAsFunction(
        _ source: UploadSourceFile, _ display: ProgressDisplay
    ) async throws -> TransferRun.Start {
        if let refusal = source.refusal { throw refusal }
        guard !source.isFolder else {
            throw TransferError(
                .usage, operation: "upload", resource: source.path,
                explanation: "It is a folder; -r uploads it.")
        }
        var options = options
        options.metadata[FilePath.metadataKey] =
            source.remotePath ?? options.metadata[FilePath.metadataKey]
        if !sendsAgain, let present = try await present(source, options, display) {
            return present
        }
        try await checking.checkSource(source.path, client, display)
        return .run(try await client.enqueueUpload(path: source.path, options: options))
    }

    /// Returns the file that the server has already: by the records, or by path and SHA-256.
    private func present(
        _ source: UploadSourceFile, _ options: UploadOptions, _ display: ProgressDisplay
    ) async throws -> TransferRun.Start? {
        let client = client
        let retrying = ServerRetry(waiting: waiting, client: client) { error in
            display.say("\(printable(source.path)): \(printable(error.description)) Trying again.")
        }
        let finished = try await retrying {
            try await client.finishedUpload(path: source.path, options: options)
        }
        guard let path = source.remotePath, let folder, options.uploadProtocol == .native else {
            return finished.map { .finished($0) }
        }
        let there = try await folder.list(client, retrying)[path]
        guard let there, there.damagedAt == nil else { return finished.map { .finished($0) } }
        if let finished, finished.remoteFileID == there.remoteFileId {
            return .present(PresentFile(there))
        }
        // Only a digest is proof, whatever the records say.
        // Another machine has sent it, or other bytes since.
        guard there.size == source.byteCount else { return nil }
        guard try await client.digest(ofFileAt: source.path) == there.sha256 else { return nil }
        // Otherwise `resume --all` would send it once more.
        try await client.cancelUnfinishedUpload(path: source.path, options: options)
        return .present(PresentFile(there))
    }
}

/// The list of the server's files below the common path of an upload, requested once.
actor SharedServerFolder {
    private let prefix: String
    private var request: Task<ServerFolder, any Error>?

    /// - Parameter sources: The files of the upload.
    init(for sources: [UploadSourceFile]) {
        let tops = Set(
            sources.compactMap { $0.remotePath.map { Array(FilePath.components(of: $0)[0].utf8) } })
        // Of several folders, everything: one list is cheaper than one for each file.
        prefix = tops.count == 1 ? tops.first.map { String(decoding: $0, as: UTF8.self) } ?? "" : ""
    }

    /// Returns the list. Its first caller starts the request, and all wait for it.
    func list(_ client: TransferClient, _ retrying: ServerRetry) async throws -> ServerFolder {
        let prefix = prefix
        let task = request ?? Task { try await ServerFolder(prefix, client, retrying) }
        request = task
        // Canceled with the command: its other callers are canceled, too.
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

extension PresentFile {
    /// A file that the server has.
    fileprivate init(_ file: FileMeta) {
        self.init(
            direction: .upload, id: file.remoteFileId, byteCount: file.size, digest: file.sha256,
            output: file.remoteFileId.text)
    }
}
