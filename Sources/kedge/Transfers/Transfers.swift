internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge transfers`
struct Transfers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and control transfers, including those of other processes.",
        subcommands: [
            List.self, Show.self, Pause.self, Resume.self, Cancel.self, Retry.self, Remove.self,
            Clear.self, Limit.self, Diagnose.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List transfers, oldest first.",
            discussion: """
                Ids are shortened; every command takes their unique beginnings, and `last` for the \
                newest transfer.
                """, aliases: ["ls"])
        @Option(help: "Only transfers in this state; may be repeated.") var state: [StateArgument] =
            []
        @Option(help: ArgumentHelp("Only the newest transfers.", valueName: "count"))
        var limit: Int?
        @Flag(help: "Print whole ids, servers and paths.") var long = false
        @OptionGroup var options: ClientOptions

        func validate() throws {
            guard limit ?? 1 > 0 else { throw ValidationError("--limit must be above 0.") }
        }

        func run() async throws {
            try await options.withClient(needsServer: false) { client in
                let states = Set(state.flatMap(\.states))
                let all = try await client.transfers()
                    .filter { states.isEmpty || states.contains($0.state) }
                let shown = all.suffix(limit ?? all.count)
                guard !options.json else {
                    for snapshot in shown { StandardOutput.write(JSONLine.text(.result, snapshot)) }
                    return
                }
                StandardOutput.write(TransferText.table(Array(shown), isLong: long))
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one transfer.")
        @OptionGroup var target: TransferTarget

        func run() async throws {
            try await target.withClient { client, id in
                let snapshot = try await client.transfer(id)
                guard !target.options.json else {
                    return StandardOutput.write(JSONLine.text(.result, snapshot))
                }
                StandardOutput.write(
                    TransferText.details(snapshot, try await client.diagnose(id)))
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm", abstract: "Remove the records of transfers that have ended.",
            discussion: """
                Finished files stay where they are. Without its record, `kedge upload` does not \
                know that a file was uploaded before. The temporary file of a failed download \
                stays, too.
                """)
        @Argument(help: "Ids of the transfers.") var ids: [String]
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient(needsServer: false) { client in
                for text in ids {
                    try await client.removeRecord(try await RemoteID.transfer(text, client))
                }
            }
        }
    }

    struct Clear: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the records of all completed and canceled transfers.",
            discussion: """
                Files stay where they are. Without its record, `kedge upload` does not know that a \
                file was uploaded before.
                """)
        @Flag(help: "Also the records of failed transfers.") var failed = false
        @Option(help: "Only records without a change for this time: 12h, 30d.")
        var olderThan: WaitArgument?
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient(needsServer: false) { client in
                let count = try await client.removeRecords(
                    in: failed ? [.completed, .canceled, .failed] : [.completed, .canceled],
                    olderThan: olderThan?.duration ?? .zero)
                guard !options.quiet else { return }
                StandardError.write("\(count) records removed.\n")
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
            abstract: "Resume a paused transfer; run it here if no other process does.",
            discussion: """
                --all runs every transfer that waits, also for a token after `kedge login`, or \
                whose process has ended, for example after a reboot. Transfers that `pause` \
                paused, and failed ones, stay as they are. Files of a folder that had no record \
                yet when the process ended are sent by the same `kedge upload -r`.
                """)
        @Argument(help: "Id of the transfer.", completion: TransferTarget.completion)
        var id: String?
        @Flag(help: "Resume all transfers that were not paused by hand.") var all = false
        @Option(help: "Transfers to run at the same time.") var parallel = 2
        @OptionGroup var connections: Connections
        @OptionGroup var waiting: WaitOptions
        @OptionGroup var options: ClientOptions

        func validate() throws {
            guard (id == nil) == all else { throw ValidationError("Name a transfer, or --all.") }
            guard (1...16).contains(parallel) else {
                throw ValidationError("--parallel must be 1 to 16.")
            }
        }

        func run() async throws {
            guard let id else { return try await runAll() }
            try await options.run(id, waiting, connections) { client, id in
                try await client.resume(id)
            }
        }

        private func runAll() async throws {
            let client = try await options.makeClient(needsServer: false) {
                $0.maxConcurrentTransfers = parallel
                waiting.apply(to: &$0)
                connections.apply(to: &$0)
            }
            let transfers = try await reporting { try await client.resumableTransfers() }
            guard !transfers.isEmpty else {
                if !options.quiet { StandardError.write("There is nothing to resume.\n") }
                return try await reporting { try await client.close() }
            }
            let transferRun = TransferRun(client: client, options: options)
            try await transferRun(
                transfers.map(\.path), byteCounts: transfers.map(\.totalBytes)
            ) { position, _ in
                .run(transfers[position].id)
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
            try await target.options.run(target.id, waiting, connections) { client, id in
                try await client.retry(id, fromScratch: fromScratch)
            }
        }
    }

    struct Limit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the rate of running commands, as --bwlimit does.",
            discussion: """
                All commands that use the same records adopt it within a second. Commands that \
                start later do not: they have --bwlimit, and bwlimit of the settings.
                """)
        @Argument(
            help: ArgumentHelp(
                "Bytes a second of one command: 2M, UPLOAD:DOWNLOAD, or off.", valueName: "rate"))
        var rate: RateArgument
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient(needsServer: false) { client in
                try await client.requestBandwidth(rate.rates)
                // A failed look at the other commands does not undo the request.
                let isHeard = (try? await client.hasOtherClients) ?? true
                guard !isHeard, !options.quiet else { return }
                StandardError.write("No command is running, so nothing was changed.\n")
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
    static let completion = CompletionKind.custom { _, _, _ in await TransferCompletion.ids() }

    @Argument(
        help: "Id of the transfer: whole, a unique beginning, or `last` for the newest.",
        completion: TransferTarget.completion)
    var id: String
    @OptionGroup var options: ClientOptions

    func withClient(
        _ body: (TransferClient, TransferID) async throws -> Void
    ) async throws {
        try await options.withClient(needsServer: false) {
            try await body($0, try await RemoteID.transfer(id, $0))
        }
    }

    /// Lends a client of the transfer's own server.
    func withOwnClient(
        _ body: (TransferClient, TransferID) async throws -> Void
    ) async throws {
        let id = try await options.transferID(id)
        try await options.lend(try await options.makeClient(for: id)) { try await body($0, id) }
    }
}

extension ClientOptions {
    /// Looks a transfer up in the records.
    fileprivate func transferID(_ text: String) async throws -> TransferID {
        var id: TransferID?
        try await withClient(needsServer: false) { id = try await RemoteID.transfer(text, $0) }
        guard let id else { preconditionFailure("the lookup returns an id or throws") }
        return id
    }

    /// Changes the transfer, then runs it to its end like the command that started it.
    fileprivate func run(
        _ text: String, _ waiting: WaitOptions, _ connections: Connections,
        _ body: @escaping @Sendable (TransferClient, TransferID) async throws -> Void
    ) async throws {
        let id = try await transferID(text)
        let client = try await makeClient(for: id) {
            waiting.apply(to: &$0)
            connections.apply(to: &$0)
        }
        try await TransferRun(client: client, options: self)([id.text]) { _, _ in
            try await body(client, id)
            return .run(id)
        }
    }
}

/// A state, or a group of states, as `--state` takes it.
struct StateArgument: ExpressibleByArgument {
    let states: [TransferState]

    init?(argument: String) {
        if argument == "unfinished" {
            states = TransferState.allCases.filter { !$0.isFinal }
        } else if let state = TransferState(rawValue: argument) {
            states = [state]
        } else {
            return nil
        }
    }

    static var allValueStrings: [String] {
        TransferState.allCases.map(\.rawValue) + ["unfinished"]
    }
}
