internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge upload`
struct Upload: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Uploads files. Run the same command again to go on where it stopped.",
        discussion: "Prints the id of each finished file on the server.")

    @Argument(help: "Files to upload; each is a transfer of its own.", completion: .file())
    var files: [String]
    @Option(help: "Media type to store with the files.") var mimeType: String?
    @Option(help: "Chunk size to ask for, in bytes.") var chunkSize: Int64?
    @Option(help: "Files that are uploaded at the same time.") var parallel = 2
    @OptionGroup var options: ClientOptions

    func validate() throws {
        guard !files.isEmpty else { throw ValidationError("Name at least one file.") }
        guard (1...16).contains(parallel) else { throw ValidationError("--parallel is 1 to 16.") }
        guard chunkSize ?? 1 > 0 else { throw ValidationError("--chunk-size is above 0.") }
    }

    func run() async throws {
        let client = try await options.makeClient { $0.maxConcurrentTransfers = parallel }
        let uploadOptions = UploadOptions(mimeType: mimeType, chunkSize: chunkSize)
        let files = files
        try await TransferRun(client: client, options: options)(files) { position in
            try await client.enqueueUpload(path: files[position], options: uploadOptions)
        }
    }
}
