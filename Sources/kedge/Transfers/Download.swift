internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge download`
struct Download: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download a file. Run the same command again to resume.",
        discussion: """
            The destination appears only when the whole file is complete and verified. Prints the
            path of the finished file. The token is sent only to the server that --server or
            KEDGE_SERVER names.
            """)

    @Argument(help: "Id of a file on the server, or any http(s) URL.") var source: String
    @Option(
        name: .shortAndLong, help: "Destination; in a directory, the file keeps its own name.",
        completion: .file())
    var output: String?
    @Flag(help: "Replace an existing file at the destination.") var overwrite = false
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

    func validate() throws {
        guard sha256.map({ SHA256Digest(hex: $0) != nil }) ?? true else {
            throw ValidationError("--sha256 must be 64 hexadecimal digits.")
        }
        guard checkContainer != .refuse else {
            throw ValidationError(
                "--check-container must be off or warn for a download.")
        }
        guard criticalFree.byteCount >= 0 else {
            throw ValidationError("--give-back-below must be 0 or more.")
        }
    }

    func run() async throws {
        let isURL = source.contains("://")
        let client = try await options.makeClient(needsServer: !isURL) {
            $0.criticalFreeByteCount = criticalFree.byteCount
            connections.apply(to: &$0)
            waiting.apply(to: &$0)
        }
        let reference: RemoteReference =
            isURL ? .url(source) : .file(try identifier(FileID.self, source))
        let destination = output ?? "./"
        let downloadOptions = DownloadOptions(
            overwrites: overwrite, expectedSHA256: sha256.flatMap { SHA256Digest(hex: $0) },
            resumesUnverified: resumeUnverified)
        let checking = checkContainer
        let transferRun = TransferRun(client: client, options: options) { snapshot, display in
            try await checking.checkResult(snapshot, client, display)
        }
        try await transferRun([source]) { _, _ in
            .run(
                try await client.enqueueDownload(
                    reference, to: destination, options: downloadOptions))
        }
    }
}
