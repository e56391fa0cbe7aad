internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// `kedge download`
struct Download: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download files. Run the same command again to resume.",
        discussion: """
            The destination appears only when the whole file is complete and verified. Prints the \
            path of each finished file. -o - writes the bytes to standard output, in order, but \
            not to a terminal; each chunk is verified before it is written, so that with a low \
            --bwlimit the first bytes come late. The token is sent only to the server that \
            --server or KEDGE_SERVER names; a URL below that of another server in the settings \
            gets the token of that server. A link of a Kedge service needs no token; it may also \
            be @FILE, or - for a line of standard input.

            --prefix downloads all files whose path on the server is the prefix or below it, as \
            `kedge upload -r` stored them. They keep their whole path below the folder -o. Of \
            several files with one path, the newest is downloaded. Run again, only what is missing \
            moves. A path that would leave the folder, and one that differs from an earlier one \
            only in case or in the Unicode form of its characters, is refused by name; the other \
            files are downloaded.
            """, aliases: ["get"])

    @Argument(
        help: ArgumentHelp(
            "Ids of files on the server (a unique beginning, or `last`), http(s) URLs, or links.",
            valueName: "id-or-url"))
    var sources: [String] = []
    @Option(
        help: ArgumentHelp(
            "Download all files at or below this path on the server; '' for all that have a path.",
            valueName: "path"))
    var prefix: String?
    @OptionGroup var folder: FolderOptions
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Destination; in a folder, files keep their own names.", valueName: "path"),
        completion: .file())
    var output: String?
    @Option(help: ArgumentHelp("Files to download at the same time.", valueName: "count"))
    var parallel = 2
    @Flag(help: "Replace an existing file at the destination.") var overwrite = false
    @Flag(
        name: .customLong("keep-mtime"),
        help: """
            Give each file the modification time that `kedge upload --keep-mtime` stored, or from \
            other servers that of Last-Modified.
            """)
    var keepsModificationTime = false
    @Option(help: "SHA-256 that the file must have, as 64 hexadecimal digits.") var sha256: String?
    @Flag(
        help: """
            Resume even if nothing proves that the file is still the same; the result is then \
            unverified.
            """)
    var resumeUnverified = false
    @Option(help: ContainerChecking.help) var checkContainer = ContainerChecking.off
    @Option(
        name: .customLong("give-back-below"),
        help: """
            Free bytes at the destination below which a full disk removes the temporary file, and \
            the download restarts; 0 for never.
            """)
    var criticalFree = ByteCountArgument(0)
    @OptionGroup var connections: Connections
    @OptionGroup var waiting: WaitOptions
    @OptionGroup var options: ClientOptions

    mutating func validate() throws {
        var words = sources
        // A file that has a link is no server.
        let files = words.prefix { LinkArgument.isFile($0) }
        words.removeFirst(files.count)
        if files.isEmpty { try options.takeServer(from: &words) }
        sources = files + words
        guard sha256.map({ SHA256Digest(hex: $0) != nil }) ?? true else {
            throw ValidationError("--sha256 must be 64 hexadecimal digits.")
        }
        guard sources.isEmpty == (prefix != nil) else {
            throw ValidationError("Name ids or URLs, or else --prefix.")
        }
        guard (1...16).contains(parallel) else {
            throw ValidationError("--parallel must be 1 to 16.")
        }
        guard sources.count < 2 || sha256 == nil, prefix == nil || sha256 == nil else {
            throw ValidationError("--sha256 needs exactly one id or URL.")
        }
        let folderOnly = [
            (!folder.include.isEmpty, "--include"), (!folder.exclude.isEmpty, "--exclude"),
            (folder.dryRun, "--dry-run"),
        ]
        for (isSet, option) in folderOnly where isSet && prefix == nil {
            throw ValidationError("\(option) needs --prefix.")
        }
        let isForFile = overwrite || resumeUnverified || keepsModificationTime
        guard !isStream || (sources.count == 1 && !isForFile) else {
            throw ValidationError(
                "-o - takes one id or URL, without --overwrite, --resume-unverified and"
                    + " --keep-mtime.")
        }
        guard !isStream || !options.json else {
            throw ValidationError("-o - writes the file to standard output; --json cannot.")
        }
        guard checkContainer != .refuse else {
            throw ValidationError(
                "--check-container must be off or warn for a download.")
        }
        guard criticalFree.byteCount >= 0 else {
            throw ValidationError("--give-back-below must be 0 or more.")
        }
    }

    private var isStream: Bool { output == "-" }

    func run() async throws {
        guard !isStream || !StandardOutput.isTerminal else {
            throw CommandFailure(
                "kedge: the file is not written to a terminal; redirect standard output, or name a"
                    + " file with -o FILE.", exitStatus: ExitStatus.usage)
        }
        let sources = try sources.map { try LinkArgument.url($0) ?? $0 }
        let needsServer = prefix != nil || sources.contains { !$0.contains("://") }
        let urls = sources.filter { $0.contains("://") }
        let client = try await options.makeClient(needsServer: needsServer, urls: urls) {
            $0.maxConcurrentTransfers = parallel
            $0.criticalFreeByteCount = criticalFree.byteCount
            connections.apply(to: &$0)
            waiting.apply(to: &$0)
        }
        let downloadOptions = DownloadOptions(
            overwrites: overwrite, expectedSHA256: sha256.flatMap { SHA256Digest(hex: $0) },
            resumesUnverified: resumeUnverified, keepsModificationTime: keepsModificationTime)
        let checking = checkContainer
        let run = TransferRun(client: client, options: options) { snapshot, display in
            try await checking.checkResult(snapshot, client, display)
        }
        if isStream {
            let source = sources[0]
            try await StreamCommand(client: client, options: options, name: source).download(
                expecting: sha256.flatMap { SHA256Digest(hex: $0) })
        } else if let prefix {
            try await download(prefix, client, run, downloadOptions)
        } else {
            let destination = try destination()
            try await run(sources) { position, _ in
                let source = sources[position]
                let reference: RemoteReference =
                    source.contains("://")
                    ? .url(source) : .file(try await RemoteID.file(source, client))
                return .run(
                    try await client.enqueueDownload(
                        reference, to: destination, options: downloadOptions))
            }
        }
    }

    /// - Throws: ``CommandFailure`` if several files would have the same destination.
    private func destination() throws -> String {
        let destination = output ?? "./"
        guard sources.count > 1 else { return destination }
        guard unsafe mkdir(destination, 0o777) == 0 || errno == EEXIST else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(
                "kedge: \(destination) cannot be created: \(reason).", exitStatus: ExitStatus.usage)
        }
        return destination.hasSuffix("/") ? destination : destination + "/"
    }

    private func download(
        _ prefix: String, _ client: TransferClient, _ run: TransferRun,
        _ downloadOptions: DownloadOptions
    ) async throws {
        let (options, filter) = (options, folder.filter)
        let retrying = ServerRetry(waiting: waiting, client: client) { error in
            guard !options.quiet else { return }
            StandardError.write("kedge: \(printable(error.description)) Trying again.\n")
        }
        let listed = try await reporting {
            try await ServerFolder(prefix, client, retrying).files
        }
        let files = listed.filter { filter.accepts(Self.path(of: $0, below: prefix)) }
        guard !files.isEmpty else {
            throw CommandFailure(
                "kedge: the server has no such files below \(prefix).",
                exitStatus: ExitStatus.notFound)
        }
        guard !folder.dryRun else {
            for file in files {
                StandardOutput.write(
                    FolderPlan.line(file.path ?? "", file.size, asJSON: options.json))
            }
            if !options.quiet { StandardError.write(FolderPlan.sum(files.map(\.size))) }
            return
        }
        let destination = DestinationFolder(path: output ?? ".")
        var (keys, collisions) = (Set<String>(), Set<Int>())
        for (position, file) in files.enumerated()
        where !keys.insert(FilePath.collisionKey(file.path ?? "")).inserted {
            collisions.insert(position)
        }
        let clashing = collisions
        try await run(files.map { $0.path ?? "" }, byteCounts: files.map(\.size)) { position, _ in
            let file = files[position]
            let path = file.path ?? ""
            guard !clashing.contains(position) else {
                throw TransferError(
                    .destinationExists, operation: "download", resource: path,
                    explanation: "Another file has the same path but for case or Unicode form;"
                        + " download it by its id, \(file.remoteFileId).")
            }
            let place = try destination.place(of: path)
            try await client.blocking { try destination.prepare(path) }
            if try await Self.isThere(file, at: place, client) {
                return .present(
                    PresentFile(
                        direction: .download, id: file.remoteFileId, byteCount: file.size,
                        digest: file.sha256, output: place))
            }
            return .run(
                try await client.enqueueDownload(
                    .file(file.remoteFileId), to: place, options: downloadOptions))
        }
    }

    private static func path(of file: FileMeta, below prefix: String) -> String {
        let path = file.path ?? ""
        let head = prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix
        // By bytes: a `/` may be one character with a mark behind it.
        return head.isEmpty || path == head
            ? path : String(decoding: path.utf8.dropFirst(head.utf8.count + 1), as: UTF8.self)
    }

    /// Whether the destination has the file's bytes already.
    private static func isThere(
        _ file: FileMeta, at place: String, _ client: TransferClient
    ) async throws -> Bool {
        var facts = stat()
        guard unsafe lstat(place, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            Int64(facts.st_size) == file.size
        else { return false }
        return try await client.digest(ofFileAt: place) == file.sha256
    }
}
