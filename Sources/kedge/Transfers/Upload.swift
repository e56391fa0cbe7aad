internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// `kedge upload`
struct Upload: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Upload files and verify them. Run the same command again to resume.",
        discussion: """
            Prints the id of each finished file on the server, in the order of the files.

            A file that was uploaded to this server before, has not changed since and still exists
            there is not sent again: its id is printed once more. --again uploads another copy.

            --session ID resumes an upload that another machine began, or whose records are lost:
            the file is compared with the bytes on the server, and only missing bytes are sent. A
            different file is refused. A session that is unknown or expired is an error; no new one
            is created. `kedge transfers show --json` prints the id.

            With --dialect tus or resumable-upload (IETF), files are uploaded to any server that
            supports the protocol; --server is then the URL that creates uploads, for example
            https://example.org/files/. If the server reports no id, the address of the upload is
            printed instead.
            """)

    @Argument(help: "Files to upload; each is a separate transfer.", completion: .file())
    var files: [String]
    @Option(help: "Media type to store with the files.") var mimeType: String?
    @Option(help: "Chunk size to request: bytes, or 8M.") var chunkSize: ByteCountArgument?
    @Option(help: "Upload protocol.") var dialect = UploadProtocolArgument(.native)
    @Option(help: "Upload session to resume; for one file.") var session: String?
    @Option(help: "Files to upload at the same time.") var parallel = 2
    @Flag(help: "Upload files again that the server has from an earlier upload.") var again = false
    @Option(help: ContainerChecking.help) var checkContainer = ContainerChecking.off
    @OptionGroup var connections: Connections
    @OptionGroup var waiting: WaitOptions
    @OptionGroup var options: ClientOptions

    func validate() throws {
        guard !files.isEmpty else { throw ValidationError("Name at least one file.") }
        guard (1...16).contains(parallel) else {
            throw ValidationError("--parallel must be 1 to 16.")
        }
        guard session == nil || (files.count == 1 && dialect.value == .native) else {
            throw ValidationError("--session needs exactly one file and the native --dialect.")
        }
        guard chunkSize?.byteCount ?? 1 > 0 else {
            throw ValidationError("--chunk-size must be above 0.")
        }
    }

    func run() async throws {
        let session = try session.map { try identifier(SessionID.self, $0) }
        let client = try await options.makeClient {
            $0.maxConcurrentTransfers = parallel
            connections.apply(to: &$0)
            waiting.apply(to: &$0)
        }
        let uploadOptions = UploadOptions(
            mimeType: mimeType, chunkSize: chunkSize?.byteCount,
            uploadProtocol: dialect.value, sessionID: session)
        // The server reports itself whether a session named by the user is finished.
        let again = again || session != nil
        let (files, checking, wish, wait) = (files, checkContainer, chunkSize?.byteCount, waiting)
        let run = TransferRun(client: client, options: options) { snapshot, display in
            guard let wish, snapshot.state == .completed, let used = snapshot.chunkSize,
                used != wish
            else { return }
            display.say(
                "\(printable(snapshot.name)): chunks of \(used) bytes were used instead of \(wish)."
            )
        }
        let byteCounts = files.map(Self.byteCount)
        try await run(files, byteCounts: byteCounts) { position, display in
            let path = files[position]
            if !again,
                let finished = try await Self.finished(
                    path, client, uploadOptions, wait, display)
            {
                return .finished(finished)
            }
            try await checking.checkSource(path, client, display)
            return .run(try await client.enqueueUpload(path: path, options: uploadOptions))
        }
    }

    /// Returns the size of the file; nil if it cannot be read, which its transfer reports.
    private static func byteCount(_ path: String) -> Int64? {
        var facts = stat()
        guard stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(facts.st_size)
    }

    /// Returns the finished upload of the file, if any. Waits for an unreachable server, as a
    /// transfer does: an upload without this check could make a second copy.
    private static func finished(
        _ path: String, _ client: TransferClient, _ options: UploadOptions,
        _ waiting: WaitOptions, _ display: ProgressDisplay
    ) async throws -> TransferSnapshot? {
        var (wait, failureCount) = (Duration.seconds(1), 0)
        let deadline = waiting.maxWait?.duration.map { ContinuousClock.now + $0 }
        while true {
            do {
                return try await client.finishedUpload(path: path, options: options)
            } catch let error as TransferError where error.isRetryable {
                failureCount += 1
                let isOver = deadline.map { ContinuousClock.now + wait > $0 } ?? false
                guard !isOver, failureCount <= waiting.retries ?? .max else { throw error }
                display.say("\(printable(path)): \(printable(error.description)) Trying again.")
                try await Task.sleep(for: wait)
                wait = min(wait * 2, .seconds(30))
            }
        }
    }
}

/// The upload protocol as an argument. A separate type, because the client has no dependency on the
/// command line.
struct UploadProtocolArgument: ExpressibleByArgument {
    let value: UploadProtocol

    init(_ value: UploadProtocol) { self.value = value }

    init?(argument: String) {
        guard let value = UploadProtocol(rawValue: argument) else { return nil }
        self.value = value
    }

    static var allValueStrings: [String] { UploadProtocol.allCases.map(\.rawValue) }
    var defaultValueDescription: String { value.rawValue }
}
