internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge download`
struct Download: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Downloads a file. Run the same command again to go on where it stopped.",
        discussion: """
            The destination appears once the whole file is there and verified, never before.
            Prints the path of the finished file. The token goes to the named server only: a URL
            that is fetched without naming one is asked without it.
            """)

    @Argument(help: "Id of a file on the server, or any http(s) URL.") var source: String
    @Option(
        name: .shortAndLong, help: "Destination; a directory keeps the file's own name.",
        completion: .file())
    var output: String?
    @Flag(help: "Replaces a file that is at the destination.") var overwrite = false
    @Option(help: "SHA-256 that the file must have, as 64 hexadecimal digits.") var sha256: String?
    @Flag(
        help: """
            Goes on after a break also where nothing proves that the file is still the same; the \
            result is unverified.
            """)
    var resumeUnverified = false
    @Option(help: ContainerChecking.help) var checkContainer = ContainerChecking.off
    @Option(
        help: """
            Free bytes at the destination below which a full disk gets its space back, and the \
            download begins anew; never with 0.
            """)
    var closeBelow: Int64 = 0
    @OptionGroup var connections: Connections
    @OptionGroup var waiting: WaitOptions
    @OptionGroup var options: ClientOptions

    func validate() throws {
        guard sha256.map({ SHA256Digest(hex: $0) != nil }) ?? true else {
            throw ValidationError("--sha256 is 64 hexadecimal digits.")
        }
        guard checkContainer != .refuse else {
            throw ValidationError(
                "A download is what the server has: --check-container is off or warn.")
        }
        guard closeBelow >= 0 else { throw ValidationError("--give-back-below is 0 or more.") }
    }

    func run() async throws {
        let isURL = source.contains("://")
        let client = try await options.makeClient(needsServer: !isURL) {
            $0.criticalFreeByteCount = closeBelow
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
