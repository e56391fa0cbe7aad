internal import ArgumentParser
internal import Foundation
internal import KedgeModel
internal import KedgeServer

/// `kedge fsck`
struct Fsck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare the records of a service with its bytes.",
        discussion: """
            Compares names and sizes; kedge scrub also reads every byte. Without --repair, nothing \
            is changed and the service may be running: each finding is then checked twice, but one \
            about an upload under way may disappear later. If the service is stopped, the rows of \
            SQLite are read from a copy in the directory for temporary files (TMPDIR).

            Settings are those of kedge serve: flags override KEDGE_* variables, which override \
            the file.

            Exit status: 0 if there is no damage, or all of it was repaired; 7 if there is damage; \
            10 if a process uses the data directory to repair; 1 if the check fails.
            """)

    @OptionGroup var options: CheckOptions

    func run() async throws { try await CheckRun(options: options, hashing: nil).run() }
}

/// `kedge scrub`
struct Scrub: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read every byte of a service and compare it with its SHA-256.",
        discussion: """
            Does everything that kedge fsck does, and reads all chunks and blobs, except parts of \
            unfinished S3 uploads, which cannot be read. Without --repair, nothing is changed. \
            Ctrl-C ends it cleanly; the next run starts over.

            Exit statuses are those of kedge fsck.
            """)

    @Option(help: "Highest number of bytes to read per second, or 50M (default: no limit).")
    var rate: ByteCountArgument?
    @OptionGroup var options: CheckOptions

    func validate() throws {
        guard rate?.byteCount ?? 1 > 0 else { throw ValidationError("--rate must be above 0.") }
    }

    func run() async throws {
        try await CheckRun(
            options: options, hashing: CheckRun.Hashing(bytesPerSecond: rate?.byteCount)
        ).run()
    }
}

/// Options of both commands.
struct CheckOptions: ParsableArguments {
    @Option(
        help: "Data directory of the service, if it holds rows or bytes.",
        completion: .directory)
    var data: String?
    @Option(help: "YAML file with the settings of the service.") var config: String?
    @Option(help: "\(ConfigurationKey.metadata.summary)") var metadata: String?
    @Option(help: "\(ConfigurationKey.bytes.summary)") var bytes: String?
    @Flag(
        help: """
            Repair without losing data: open sessions request missing or damaged chunks again, \
            and files without a row move to the directory quarantine. A damaged finished file is \
            marked, and the service refuses it from then on. Its bytes are never changed, nor is \
            any object of a bucket.
            """)
    var repair = false
    @Flag(help: "Write one JSON object per line: the findings, then a summary.") var json = false

    /// Loads the settings of the service.
    ///
    /// - Throws: ``CommandFailure`` for invalid settings, or if the location of the data directory
    ///   is not named: checking a directory that happens to be here would be misleading.
    func configuration() async throws -> ServiceConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let flags: [ConfigurationKey: String?] = [
            .data: data, .metadata: metadata, .bytes: bytes,
        ]
        let file = config ?? environment["KEDGE_CONFIG"]
        let configuration = try await checked {
            try await ConfigurationLoader(
                flags: flags.compactMapValues { $0 }, environment: environment, file: file
            ).configuration()
        }
        let isNamed =
            data != nil || file != nil
            || environment[ConfigurationKey.data.environmentName] != nil
        let isNeeded = configuration.metadata == .sqlite || configuration.bytes == .disk
        guard isNamed || !isNeeded else {
            throw CommandFailure(
                "kedge: no data directory; set --data or --config",
                exitStatus: ExitStatus.usage)
        }
        return configuration
    }
}
