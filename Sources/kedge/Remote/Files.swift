internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge files`
struct Files: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show, verify and remove files on the server.",
        subcommands: [List.self, Show.self, Verify.self, Remove.self],
        defaultSubcommand: List.self, aliases: ["ls"])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the files, newest first, or by path with --prefix.", aliases: ["ls"])
        @Option(
            help: ArgumentHelp(
                "List files at or below this path; '' for all that have a path.",
                valueName: "path"))
        var prefix: String?
        @Flag(help: "List only files whose copy on the server is known to be damaged.")
        var damaged = false
        @Option(help: ArgumentHelp("List at most this many files.", valueName: "count"))
        var limit: Int?
        @Flag(name: .shortAndLong, help: "Also print the SHA-256 and the media type.")
        var long = false
        @OptionGroup var options: ClientOptions

        func validate() throws {
            guard limit ?? 1 > 0 else { throw ValidationError("--limit must be above 0.") }
            guard prefix == nil || !damaged else {
                throw ValidationError("--prefix and --damaged cannot be combined.")
            }
        }

        func run() async throws {
            try await options.withClient { client in
                var isFirst = true
                try await everyPage(of: client) { files in
                    if options.json {
                        for file in files {
                            StandardOutput.write(JSONLine.encode(VersionedLine(value: file)))
                        }
                    } else {
                        let text = FileText.table(files, isLong: long, hasHeader: isFirst)
                        StandardOutput.write(text)
                    }
                    isFirst = false
                }
            }
        }

        private func everyPage(
            of client: TransferClient, _ show: ([FileMeta]) -> Void
        ) async throws {
            var rest = limit ?? .max
            try await ServerPages.forEach { cursor in
                let page = try await client.remote.listFiles(
                    prefix: prefix, after: cursor, limit: min(rest, 100), onlyDamaged: damaged)
                return (page.files, page.next)
            } _: { files in
                show(Array(files.prefix(rest)))
                rest -= min(rest, files.count)
                return rest > 0
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one file as JSON.")
        @Argument(help: RemoteID.help) var id: String
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                let id = try await RemoteID.file(id, client)
                let file = try await client.remote.fileMeta(id)
                StandardOutput.write(JSONLine.encode(VersionedLine(value: file)))
            }
        }
    }

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare a local file with a file on the server.",
            discussion: """
                Compares the SHA-256 of the local file with the one that the server recorded. \
                Nothing is transferred, and the server reads none of its bytes: `kedge scrub` \
                does. Exit status 7 means that they differ.
                """)
        @Argument(help: "The local file.", completion: .file()) var file: String
        @Argument(help: RemoteID.help) var id: String
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                let remote = try await client.remote.fileMeta(try await RemoteID.file(id, client))
                let digest = try await localDigest(client)
                guard digest == remote.sha256 else {
                    throw TransferError(
                        .integrityMismatch, operation: "verify", resource: file,
                        explanation: "\(file) has the SHA-256 \(digest), and \(remote.fileName) on"
                            + " the server \(remote.sha256) in \(remote.size) bytes.")
                }
                guard !options.quiet else { return }
                StandardOutput.write(
                    options.json
                        ? JSONLine.encode(VersionedLine(value: remote))
                        : "\(printable(file)): the same as \(remote.remoteFileId), \(digest)\n")
            }
        }

        /// Returns the digest of the local file. Its errors have the name of the file.
        private func localDigest(_ client: TransferClient) async throws -> SHA256Digest {
            do {
                return try await client.digest(ofFileAt: file)
            } catch let error as TransferError {
                throw CommandFailure(
                    "kedge: \(file): \(error)", exitStatus: error.code.facts.exitStatus)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm", abstract: "Delete files on the server.")
        @Argument(help: "Ids of the files: whole, a unique beginning, or `last`.")
        var ids: [String]
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                // All are looked up first: `last` means the newest file before the deletion.
                var files: [FileID] = []
                for id in ids { files.append(try await RemoteID.file(id, client)) }
                let ids = files
                var failures: [ErrorCode] = []
                for id in ids {
                    do {
                        try await client.remote.deleteFile(id)
                    } catch let error as TransferError where !error.isRetryable {
                        // A missing file does not stop the deletion of the others.
                        StandardError.write(printable("kedge: \(id): \(error)") + "\n")
                        failures.append(error.code)
                    } catch let error as TransferError {
                        throw CommandFailure(
                            "kedge: \(id): \(error)", exitStatus: error.code.facts.exitStatus)
                    }
                }
                guard let first = failures.first else { return }
                throw CommandFailure(
                    nil,
                    exitStatus: failures.count < ids.count
                        ? ExitStatus.someFailed : first.facts.exitStatus)
            }
        }
    }
}

/// `kedge session`
struct Session: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show upload sessions on the server.",
        subcommands: [List.self, Show.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the unfinished sessions, newest first.", aliases: ["ls"])
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                var table = TextTable([
                    ("SESSION", .left), ("DONE", .right), ("SIZE", .right), ("AGE", .right),
                    ("EXPIRES", .left), ("NAME", .left),
                ])
                try await ServerPages.forEach { cursor in
                    let page = try await client.remote.listSessions(after: cursor, limit: 100)
                    return (page.sessions, page.next)
                } _: { sessions in
                    for session in sessions {
                        guard !options.json else {
                            StandardOutput.write(JSONLine.encode(VersionedLine(value: session)))
                            continue
                        }
                        table.add([
                            session.sessionId.text,
                            session.receivedBytes.map { ByteText.size($0) } ?? "?",
                            session.fileSize.map { ByteText.size($0) } ?? "?",
                            ByteText.age(session.createdAt), session.expiresAt.description,
                            session.path ?? session.fileName,
                        ])
                    }
                    return true
                }
                StandardOutput.write(table.text)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the status of one session as JSON.")
        @Argument(help: "Id of the session: whole, a unique beginning, or `last`.") var id: String
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                let id = try await RemoteID.session(id, client)
                let session = try await client.remote.sessionStatus(id)
                StandardOutput.write(JSONLine.encode(VersionedLine(value: session)))
            }
        }
    }
}

/// Files of the server as text for people.
enum FileText {
    /// Returns a table of files; empty for none.
    static func table(_ files: [FileMeta], isLong: Bool, hasHeader: Bool) -> String {
        var columns: [(name: String, alignment: TextTable.Alignment)] = [
            ("ID", .left), ("CREATED", .left), ("SIZE", .right),
        ]
        if isLong { columns += [("SHA-256", .left), ("TYPE", .left)] }
        var table = TextTable(columns + [("NAME", .left)])
        for file in files {
            var row = [
                file.remoteFileId.text, file.createdAt.description, ByteText.size(file.size),
            ]
            if isLong { row += [file.sha256.hex, file.mimeType ?? "-"] }
            let name = file.path ?? file.fileName
            table.add(row + [name + (file.damagedAt == nil ? "" : "  DAMAGED")])
        }
        guard hasHeader else {
            return String(table.text.drop { $0 != "\n" }.dropFirst())
        }
        return table.text
    }
}
