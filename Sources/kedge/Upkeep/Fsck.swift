internal import ArgumentParser

/// `kedge fsck`
struct Fsck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares the records of a stopped service with its bytes.",
        discussion: """
            Compares names and sizes; kedge scrub reads every byte, too. Nothing is changed without \
            --repair. The rows are read from a copy in the directory for temporary files (TMPDIR).

            Exit status: 0 when nothing is wrong, or nothing any more; 7 when something is; 10 when a \
            process uses the data directory; 1 when the check cannot be made.
            """)

    @OptionGroup var options: CheckOptions

    func run() async throws { try await CheckRun(options: options, hashing: nil).run() }
}

/// `kedge scrub`
struct Scrub: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads every byte of a stopped service and compares it with its SHA-256.",
        discussion: """
            Does all that kedge fsck does, and reads all chunks and blobs. Nothing is changed without \
            --repair. Ctrl-C ends it cleanly; it begins anew the next time.

            Exit statuses are those of kedge fsck.
            """)

    @Option(help: "Most bytes to read in a second; as many as the disk gives when not set.")
    var rate: Int64?
    @OptionGroup var options: CheckOptions

    func validate() throws {
        guard rate ?? 1 > 0 else { throw ValidationError("--rate is above 0.") }
    }

    func run() async throws {
        try await CheckRun(options: options, hashing: CheckRun.Hashing(bytesPerSecond: rate)).run()
    }
}

/// What both commands take.
struct CheckOptions: ParsableArguments {
    @Option(help: "The data directory of the service.", completion: .directory) var data: String
    @Flag(
        help: """
            Repairs what can be repaired without losing anything: open sessions ask again for chunks \
            that are not there or wrong, and bytes that no row knows go to the directory quarantine. \
            Files and their blobs are never touched.
            """)
    var repair = false
    @Flag(help: "One JSON object a line: the findings, then a summary.") var json = false
}
