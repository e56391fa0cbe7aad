internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge files`
struct Files: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and remove files on the server.",
        subcommands: [List.self, Show.self, Remove.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the files, newest first.")
        @Flag(help: "List only files whose copy on the server is known to be damaged.")
        var damaged = false
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                var cursor: String?
                var seen: Set<String> = []
                repeat {
                    let page = try await client.remote.listFiles(
                        after: cursor, onlyDamaged: damaged)
                    for file in page.files { StandardOutput.write(line(file)) }
                    cursor = page.next
                    if let next = page.next, !seen.insert(next).inserted {
                        throw CommandFailure(
                            "kedge: the server repeats a page of its list; stopping here.")
                    }
                } while cursor != nil
            }
        }

        private func line(_ file: FileMeta) -> String {
            if options.json { return JSONLine.encode(VersionedLine(value: file)) }
            return "\(file.remoteFileId)  \(file.createdAt)  \(ByteText.size(file.size))  "
                + "\(printable(file.fileName))\(file.damagedAt == nil ? "" : "  DAMAGED")\n"
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one file as JSON.")
        @Argument(help: "Id of the file.") var id: String
        @OptionGroup var options: ClientOptions

        func run() async throws {
            let id = try identifier(FileID.self, id)
            try await options.withClient { client in
                let file = try await client.remote.fileMeta(id)
                StandardOutput.write(JSONLine.encode(VersionedLine(value: file)))
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm", abstract: "Delete files on the server.")
        @Argument(help: "Ids of the files.") var ids: [String]
        @OptionGroup var options: ClientOptions

        func run() async throws {
            let ids = try ids.map { try identifier(FileID.self, $0) }
            try await options.withClient { client in
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
        abstract: "Show upload sessions on the server.", subcommands: [Show.self])

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the status of one session as JSON.")
        @Argument(help: "Id of the session.") var id: String
        @OptionGroup var options: ClientOptions

        func run() async throws {
            let id = try identifier(SessionID.self, id)
            try await options.withClient { client in
                let session = try await client.remote.sessionStatus(id)
                StandardOutput.write(JSONLine.encode(VersionedLine(value: session)))
            }
        }
    }
}
