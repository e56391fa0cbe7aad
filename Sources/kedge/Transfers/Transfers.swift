internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge transfers`
struct Transfers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and control transfers, including those of other processes.",
        subcommands: [
            List.self, Show.self, Pause.self, Resume.self, Cancel.self, Retry.self, Diagnose.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List all transfers.")
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient(needsServer: false) { client in
                for snapshot in try await client.transfers() {
                    StandardOutput.write(TransferText.line(snapshot, asJSON: options.json))
                }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one transfer.")
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.withClient { client, id in
                let snapshot = try await client.transfer(id)
                StandardOutput.write(TransferText.line(snapshot, asJSON: target.options.json))
            }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Pause a transfer.")
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.withClient { client, id in try await client.pause(id) }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resume a paused transfer; run it here if no other process does.")
        @OptionGroup var connections: Connections
        @OptionGroup var waiting: WaitOptions
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.run(waiting, connections) { client, id in
                try await client.resume(id)
            }
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel a transfer and remove its partial bytes on both sides.")
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.withOwnClient { client, id in try await client.cancel(id) }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retry a failed transfer; run it here if no other process does.")
        @Flag(help: "Discard the received bytes and start over.") var fromScratch = false
        @OptionGroup var connections: Connections
        @OptionGroup var waiting: WaitOptions
        @OptionGroup var target: TransferTarget

        func run() async throws {
            let fromScratch = fromScratch
            try await target.run(waiting, connections) { client, id in
                try await client.retry(id, fromScratch: fromScratch)
            }
        }
    }

    struct Diagnose: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print diagnostics without secrets as JSON.")
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.withClient { client, id in
                StandardOutput.write(JSONLine.encode(try await client.diagnose(id)))
            }
        }
    }
}

/// One transfer, selected by its id.
struct TransferTarget: ParsableArguments {
    @Argument(help: "Id of the transfer.") var id: String
    @OptionGroup var options: ClientOptions

    func withClient(
        _ body: (TransferClient, TransferID) async throws -> Void
    ) async throws {
        let id = try identifier(TransferID.self, id)
        try await options.withClient(needsServer: false) { try await body($0, id) }
    }

    /// Lends a client of the transfer's own server.
    func withOwnClient(
        _ body: (TransferClient, TransferID) async throws -> Void
    ) async throws {
        let id = try identifier(TransferID.self, id)
        try await options.lend(try await options.makeClient(for: id)) { try await body($0, id) }
    }

    /// Changes the transfer, then runs it to its end like the command that started it.
    func run(
        _ waiting: WaitOptions, _ connections: Connections,
        _ body: @escaping @Sendable (TransferClient, TransferID) async throws -> Void
    ) async throws {
        let id = try identifier(TransferID.self, id)
        let client = try await options.makeClient(for: id) {
            waiting.apply(to: &$0)
            connections.apply(to: &$0)
        }
        try await TransferRun(client: client, options: options)([id.text]) { _, _ in
            try await body(client, id)
            return .run(id)
        }
    }
}

/// Formats a transfer as a line of text or JSON.
enum TransferText {
    static func line(_ snapshot: TransferSnapshot, asJSON: Bool) -> String {
        if asJSON { return JSONLine.text(.result, snapshot) }
        let size = snapshot.totalBytes.map { ByteText.size($0) } ?? "?"
        let done = ByteText.size(snapshot.bytesTransferred)
        let flag =
            snapshot.offersRetryFromScratch
            ? "  INTEGRITY: kedge transfers retry \(snapshot.id) --from-scratch" : ""
        return "\(snapshot.id)  \(snapshot.direction.rawValue)  \(snapshot.state.rawValue)  "
            + "\(done)/\(size)  \(printable(snapshot.name))  "
            + "\(printable(snapshot.message))\(flag)\n"
    }
}
