internal import ArgumentParser
internal import Foundation
internal import KedgeModel
internal import KedgeServer

/// The command: parse, wire, run.
struct Kedge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kedge",
        abstract: "Transfer large files over unreliable links, and resume where they stopped.",
        discussion: """
            kedge serve                                  start the service
            kedge upload video.mp4 --server URL          run the same command again to resume
            kedge download FILE_ID -o video.mp4 --server URL

            Data goes to standard output, messages and progress to standard error.
            """,
        version: KedgeVersion.current,
        subcommands: [
            Serve.self, Upload.self, Download.self, Transfers.self, Files.self, Session.self,
            Doctor.self, Login.self, LinkCommand.self, Token.self, Key.self, Admin.self,
            Migrate.self, Fsck.self,
            Scrub.self,
        ])
}

@main
enum Main {
    static func main() async {
        // A closed reader, as in `kedge … | head`, is no failure.
        signal(SIGPIPE, SIG_IGN)
        occupyStandardStreams()
        do {
            try requireText()
            var command = try Kedge.parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            endProcess(ExitStatus.success)
        } catch {
            endProcess(report(error))
        }
    }

    /// Opens /dev/null for standard streams that are closed. Otherwise a file that is opened next
    /// would get their number, and output would go into it.
    private static func occupyStandardStreams() {
        for descriptor in STDIN_FILENO...STDERR_FILENO
        where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            _ = unsafe open("/dev/null", O_RDWR)
        }
    }

    /// Refuses arguments that are not UTF-8. As strings they would be repaired, and name other
    /// files.
    private static func requireText() throws {
        for index in 0..<Int(CommandLine.argc) {
            guard let word = unsafe CommandLine.unsafeArgv[index],
                unsafe String(validatingCString: word) == nil
            else { continue }
            throw CommandFailure(
                "kedge: argument \(index) is not UTF-8. A file of such a name must be renamed.",
                exitStatus: ExitStatus.usage)
        }
    }

    /// The subcommand that was probably meant, if the parser met another word in its place.
    private static func suggestion(_ message: String) -> String {
        guard message.contains("nexpected argument") else { return "" }
        var command: any ParsableCommand.Type = Kedge.self
        var path = ["kedge"]
        for word in CommandLine.arguments.dropFirst() {
            let subcommands = command.configuration.subcommands
            let named = subcommands.first {
                $0._commandName == word || $0.configuration.aliases.contains(word)
            }
            guard let named else {
                let names = subcommands.map { $0._commandName }
                guard let nearest = NearestName.of(word, in: names) else { return "" }
                return "\nDid you mean `\((path + [nearest]).joined(separator: " "))`?"
            }
            command = named
            path.append(named._commandName)
        }
        return ""
    }

    /// Prints the error once and returns its exit status.
    private static func report(_ error: any Error) -> Int32 {
        if let failure = error as? CommandFailure {
            if let message = failure.message {
                StandardError.write(printable(message, keepsLines: true) + "\n")
            }
            return failure.exitStatus
        }
        let parserStatus = Kedge.exitCode(for: error)
        let message = Kedge.fullMessage(for: error)
        guard parserStatus != .success else {
            // Help, version and completion scripts were requested: they are data.
            StandardOutput.write(message + "\n")
            return ExitStatus.success
        }
        if !message.isEmpty {
            StandardError.write(printable(message + suggestion(message), keepsLines: true) + "\n")
        }
        return parserStatus == .validationFailure ? ExitStatus.usage : ExitStatus.failure
    }
}
