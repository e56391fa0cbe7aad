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

            With -r, a folder is uploaded with everything below it. Each file is a transfer of its \
            own and keeps its path from the folder's name on, for example trip/day 1/a.jpg, by \
            which `kedge download --prefix trip` finds it again. Run again, only files are sent \
            that the server does not have under the same path with the same bytes. Symbolic links \
            and empty folders are skipped and named; hidden files are uploaded like others.

            `-` uploads standard input, under --name. A broken connection continues; a kill does \
            not, and any failure removes the upload. A pipe does not tell a killed producer from \
            the end of its output: --size or --sha256 refuse input that is too short. Or let kedge \
            run the producer: `kedge upload --name backup.tar -- tar -c photos` keeps the file \
            only if the command exits with 0.

            A file that was uploaded to this server before, has not changed since and still exists \
            there is not sent again: its id is printed once more. Of a new, renamed or copied file \
            nothing is sent either, if you have a file with the same bytes on the server: they are \
            compared by SHA-256, and the file gets an id of its own. --again sends all bytes.

            --session ID resumes an upload that another machine began, or whose records are lost: \
            the file is compared with the bytes on the server, and only missing bytes are sent. A \
            different file is refused. A session that is unknown or expired is an error; no new \
            one is created. `kedge transfers show --json` prints the id.

            With --protocol tus or resumable-upload (IETF), files are uploaded to any server that \
            supports the protocol; --server is then the URL that creates uploads, for example \
            https://example.org/files/. If the server reports no id, the address of the upload is \
            printed instead.

            With a link of a Kedge service, --server LINK uploads without a token. The link is a \
            URL, @FILE, or - for standard input. The same command, or `kedge transfers resume`, \
            continues.
            """, aliases: ["put"])

    @Argument(
        help: ArgumentHelp(
            "Files to upload, folders with -r, or - for standard input; each file is a separate "
                + "transfer. With --name, the words after -- are a command, whose output is "
                + "uploaded.",
            valueName: "file"),
        completion: .file())
    var files: [String] = []
    @Flag(name: .shortAndLong, help: "Upload folders with everything below them.")
    var recursive = false
    @Option(
        help: ArgumentHelp(
            "Path on the server in place of the folder's name; '' for none.", valueName: "path"))
    var prefix: String?
    @Flag(help: "Upload what symbolic links lead to, instead of skipping them.")
    var followLinks = false
    @OptionGroup var folder: FolderOptions
    @Option(help: "Name of the file on the server; for one file.") var name: String?
    @Option(help: "Size that standard input or a command's output must have: bytes, or 8M.")
    var size: ByteCountArgument?
    @Option(help: "SHA-256 that standard input or a command's output must have.")
    var sha256: String?
    @Option(
        help: ArgumentHelp(
            "Text to store with the files; may be repeated.", valueName: "key=value"))
    var metadata: [MetadataArgument] = []
    @Flag(
        name: .customLong("keep-mtime"),
        help: "Store the modification times of the files, for `kedge download --keep-mtime`.")
    var keepsModificationTime = false
    @Option(help: ArgumentHelp("Media type to store with the files.", valueName: "type"))
    var mimeType: String?
    @Option(help: ArgumentHelp("Chunk size to request: bytes, or 8M.", valueName: "bytes"))
    var chunkSize: ByteCountArgument?
    @Option(
        name: [.customLong("protocol"), .customLong("dialect", withSingleDash: false)],
        help: ArgumentHelp("Upload protocol.", valueName: "protocol"))
    var uploadProtocol = UploadProtocolArgument(.native)
    @Option(help: ArgumentHelp("Upload session to resume; for one file.", valueName: "id"))
    var session: String?
    @Option(help: ArgumentHelp("Files to upload at the same time.", valueName: "count"))
    var parallel = 2
    @Flag(
        help: "Send all bytes, also of files and bytes that the server has from an earlier upload.")
    var again = false
    @Option(help: ContainerChecking.help) var checkContainer = ContainerChecking.off
    @OptionGroup var connections: Connections
    @OptionGroup var waiting: WaitOptions
    @OptionGroup var options: ClientOptions

    mutating func validate() throws {
        var words = files
        try options.takeServer(from: &words)
        files = words
        guard !isStream else { return try validateStream() }
        guard !files.isEmpty else {
            let hint = options.server.map { ClientSettings.fileHint($0) } ?? ""
            throw ValidationError("Name at least one file." + hint)
        }
        guard size == nil, sha256 == nil else {
            throw ValidationError("--size and --sha256 are for standard input and commands.")
        }
        guard (1...16).contains(parallel) else {
            throw ValidationError("--parallel must be 1 to 16.")
        }
        guard session == nil || (files.count == 1 && uploadProtocol.value == .native) else {
            throw ValidationError("--session needs exactly one file and the native --protocol.")
        }
        guard !keepsModificationTime || (session == nil && uploadProtocol.value != .resumableUpload)
        else {
            throw ValidationError(
                "--keep-mtime needs a protocol with metadata: native or tus, without --session.")
        }
        guard name == nil || (files.count == 1 && !recursive) else {
            throw ValidationError("--name needs exactly one file.")
        }
        let folderOnly = [
            (prefix != nil, "--prefix"), (followLinks, "--follow-links"),
            (!folder.include.isEmpty, "--include"), (!folder.exclude.isEmpty, "--exclude"),
            (folder.dryRun, "--dry-run"),
        ]
        for (isSet, option) in folderOnly where isSet && !recursive {
            throw ValidationError("\(option) needs -r.")
        }
        guard !recursive || (session == nil && uploadProtocol.value != .resumableUpload) else {
            throw ValidationError(
                "-r needs a protocol that can send the paths: native or tus, without --session.")
        }
        guard name.map(FileName.isValid) ?? true else {
            throw ValidationError("--name must be a name of at most 255 bytes without / and \\.")
        }
        guard chunkSize?.byteCount ?? 1 > 0 else {
            throw ValidationError("--chunk-size must be above 0.")
        }
    }

    private var isStream: Bool { files == ["-"] || !producer.isEmpty }

    /// The command whose output is uploaded; empty for files.
    private var producer: [String] {
        // The parser does not keep the terminator.
        let words = CommandLine.arguments.drop { $0 != "--" }.dropFirst()
        guard name != nil, files.elementsEqual(words) else { return [] }
        // `--` also ends the options before the name of a file.
        let isFile = files.count == 1 && UploadSourceFile(path: files[0]).byteCount != nil
        return isFile ? [] : Array(words)
    }

    private func validateStream() throws {
        guard let name else { throw ValidationError("Standard input needs a --name.") }
        guard FileName.isValid(name) else {
            throw ValidationError("--name must be a name of at most 255 bytes without / and \\.")
        }
        let isOther = [
            recursive, session != nil, again, !metadata.isEmpty, keepsModificationTime,
            chunkSize != nil, checkContainer != .off, uploadProtocol.value != .native,
            prefix != nil, followLinks,
            !folder.include.isEmpty, !folder.exclude.isEmpty, folder.dryRun,
        ]
        guard !isOther.contains(true) else {
            throw ValidationError(
                "Standard input and commands take no options of folders, and no --session, --again,"
                    + " --metadata, --keep-mtime, --chunk-size, --check-container and --protocol.")
        }
        guard sha256.map({ SHA256Digest(hex: $0) != nil }) ?? true else {
            throw ValidationError("--sha256 must be 64 hexadecimal digits.")
        }
        guard size?.byteCount ?? 0 >= 0 else { throw ValidationError("--size must be 0 or more.") }
    }

    func run() async throws {
        guard !isStream else { return try await runStream() }
        let sources = recursive ? folderSources() : files.map { UploadSourceFile(path: $0) }
        guard !sources.isEmpty else {
            throw CommandFailure(
                "kedge: there are no such files below \(files.joined(separator: ", ")).",
                exitStatus: ExitStatus.notFound)
        }
        if folder.dryRun { return try printPlan(sources) }
        let link = try uploadLink()
        let client = try await makeClient(by: link)
        var sessionID: SessionID?
        if let session {
            sessionID = try await reporting { try await RemoteID.session(session, client) }
        }
        var uploadOptions = UploadOptions(
            fileName: name, mimeType: mimeType, chunkSize: chunkSize?.byteCount,
            uploadProtocol: uploadProtocol.value, sessionID: sessionID,
            keepsModificationTime: keepsModificationTime)
        uploadOptions.sendsAllBytes = again
        uploadOptions.link = link
        for entry in metadata { uploadOptions.metadata[entry.key] = entry.value }
        let wish = chunkSize?.byteCount
        var run = TransferRun(client: client, options: options) { snapshot, display in
            guard let wish, snapshot.state == .completed, let used = snapshot.chunkSize,
                used != wish
            else { return }
            display.say(
                "\(printable(snapshot.name)): chunks of \(used) bytes were used instead of \(wish)."
            )
        }
        run.namesFiles = recursive
        let uploading = UploadStart(
            client: client, options: uploadOptions, waiting: waiting, checking: checkContainer,
            // The server reports itself whether a session named by the user is finished.
            // A link does not permit to ask what is there.
            sendsAgain: again || session != nil || link != nil,
            folder: recursive && link == nil ? SharedServerFolder(for: sources) : nil)
        try await run(sources.map(\.name), byteCounts: sources.map(\.byteCount)) {
            try await uploading(sources[$0], $1)
        }
    }

    private func uploadLink() throws -> ServiceLink? {
        guard !isStream || options.server != "-" || !producer.isEmpty else {
            throw CommandFailure(
                "kedge: standard input cannot be both the link and the file.",
                exitStatus: ExitStatus.usage)
        }
        let link = try options.link()
        guard link == nil || session == nil else {
            throw CommandFailure(
                "kedge: --session needs a server, not a link.", exitStatus: ExitStatus.usage)
        }
        return link
    }

    /// - Parameter link: Nil for the server of the options.
    private func makeClient(by link: ServiceLink?) async throws -> TransferClient {
        func adjust(_ configuration: inout ClientConfiguration) {
            if !isStream { configuration.maxConcurrentTransfers = parallel }
            connections.apply(to: &configuration)
            waiting.apply(to: &configuration)
        }
        guard let link else { return try await options.makeClient(adjust) }
        return try await options.makeClient(by: link, adjust)
    }

    private func runStream() async throws {
        let link = try uploadLink()
        let client = try await makeClient(by: link)
        var stream = StreamUploadOptions(
            fileName: name ?? "", mimeType: mimeType, expectedSize: size?.byteCount,
            expectedSHA256: sha256.flatMap { SHA256Digest(hex: $0) })
        stream.link = link
        try await StreamCommand(client: client, options: options, name: stream.fileName)
            .upload(stream, producer: producer)
    }

    /// Reads the named folders. Names what is left out.
    private func folderSources() -> [UploadSourceFile] {
        FolderSources(
            filter: folder.filter, followsLinks: followLinks, prefix: prefix, skip: warn
        ).files(in: files)
    }

    private func warn(_ name: String, _ message: String) {
        if options.json {
            StandardOutput.write(JSONLine.encode(WarningLine(name: name, message: message)))
        }
        guard !options.quiet else { return }
        StandardError.write("kedge: \(printable(name)): \(printable(message))\n")
    }

    private func printPlan(_ sources: [UploadSourceFile]) throws {
        for source in sources {
            if let refusal = source.refusal {
                warn(source.path, refusal.explanation ?? "")
                continue
            }
            StandardOutput.write(
                FolderPlan.line(
                    source.remotePath ?? source.name, source.byteCount, asJSON: options.json))
        }
        if !options.quiet {
            StandardError.write(
                FolderPlan.sum(sources.filter { $0.refusal == nil }.map(\.byteCount)))
        }
        if sources.contains(where: { $0.refusal != nil }) {
            throw CommandFailure(nil, exitStatus: ExitStatus.someFailed)
        }
    }
}

/// One entry of `--metadata`.
struct MetadataArgument: ExpressibleByArgument {
    let key: String
    let value: String

    init?(argument: String) {
        guard let equals = argument.firstIndex(of: "="), equals > argument.startIndex else {
            return nil
        }
        key = String(argument[..<equals])
        value = String(argument[argument.index(after: equals)...])
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
