internal import ArgumentParser
internal import Foundation
internal import KedgeModel
internal import KedgeServer

/// `kedge fsck`
struct Fsck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares the records of a service with its bytes.",
        discussion: """
            Compares names and sizes; kedge scrub reads every byte, too. Nothing is changed without \
            --repair. The service may run meanwhile, except with --repair: what is wrong is then looked \
            at twice, and a finding about an upload under way may still be gone the next time. Of a \
            service that is stopped, the rows of SQLite are read from a copy in the directory for \
            temporary files (TMPDIR).

            Settings are those of kedge serve: flags beat KEDGE_* variables, which beat the file.

            Exit status: 0 when nothing is wrong, or nothing any more; 7 when something is; 10 when a \
            process uses the data directory that is to be repaired; 1 when the check cannot be made.
            """)

    @OptionGroup var options: CheckOptions

    func run() async throws { try await CheckRun(options: options, hashing: nil).run() }
}

/// `kedge scrub`
struct Scrub: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads every byte of a service and compares it with its SHA-256.",
        discussion: """
            Does all that kedge fsck does, and reads all chunks and blobs, apart from parts of \
            unfinished uploads to S3, which nobody can read. Nothing is changed without --repair. Ctrl-C ends it cleanly; it begins anew the next time.

            Exit statuses are those of kedge fsck.
            """)

    @Option(help: "Most bytes to read in a second; as many as there are when not set.")
    var rate: Int64?
    @OptionGroup var options: CheckOptions

    func validate() throws {
        guard rate ?? 1 > 0 else { throw ValidationError("--rate is above 0.") }
    }

    func run() async throws {
        try await CheckRun(options: options, hashing: CheckRun.Hashing(bytesPerSecond: rate)).run()
    }
}

/// Options of both commands.
struct CheckOptions: ParsableArguments {
    @Option(
        help: "The data directory of the service, where rows or bytes are in it.",
        completion: .directory)
    var data: String?
    @Option(help: "YAML file with the settings of the service.") var config: String?
    @Option(help: "\(ConfigurationKey.metadata.summary)") var metadata: String?
    @Option(help: "\(ConfigurationKey.bytes.summary)") var bytes: String?
    @Flag(
        help: """
            Repairs what can be repaired without losing anything: open sessions ask again for chunks \
            that are not there or wrong, and files that no row knows go to the directory quarantine. \
            A finished file that is damaged is marked: the service refuses it from then on. Its bytes \
            are never touched, nor is any object of a bucket.
            """)
    var repair = false
    @Flag(help: "One JSON object a line: the findings, then a summary.") var json = false

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
                "kedge: --data or --config says where the service's data is",
                exitStatus: ExitStatus.usage)
        }
        return configuration
    }
}
