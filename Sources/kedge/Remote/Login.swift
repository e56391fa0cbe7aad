internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// `kedge login`
struct Login: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Save a server and its token under a name.",
        discussion: """
            Afterwards `kedge upload @NAME FILE` or `--server @NAME` uses them; the first server \
            becomes the default. The token is read from the terminal or from standard input, and \
            may be empty. It is saved in $XDG_CONFIG_HOME/kedge/servers.yaml, which only you can \
            read. --token-command and --token-file save where the token comes from instead.

            The server is asked first; --force saves it although it does not answer, or not as a \
            Kedge. It does not save an address or a file that is wrong, nor a token that the \
            server refuses.
            """)

    @Argument(help: "Name of the server.") var name: String
    @Argument(help: "URL of the server.") var url: String
    @Option(
        help: ArgumentHelp(
            "Command of a shell that prints the token.", valueName: "command"),
        completion: .shellCommand("compgen -c"))
    var tokenCommand: String?
    @Option(
        help: ArgumentHelp("File that contains the token.", valueName: "file"),
        completion: .file())
    var tokenFile: String?
    @Option(
        help: ArgumentHelp("PEM file of the certificate authorities.", valueName: "file"),
        completion: .file())
    var caFile: String?
    @Flag(help: "Make it the default server.") var `default` = false
    @Flag(help: "Save the server although it does not answer.") var force = false

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    func validate() throws {
        let isName =
            !name.isEmpty
            && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "@") }
        guard isName else {
            throw ValidationError("The name must be ASCII without spaces and @.")
        }
        guard tokenCommand == nil || tokenFile == nil else {
            throw ValidationError("Name either --token-command or --token-file.")
        }
    }

    func run() async throws {
        var server = NamedServer(name: name, url: url)
        server.tokenCommand = tokenCommand
        server.tokenFile = tokenFile.map { URL(fileURLWithPath: $0).path }
        server.caFile = caFile.map { URL(fileURLWithPath: $0).path }
        let input = HiddenInput()
        if tokenCommand == nil, tokenFile == nil {
            let line = input.readLine(asking: "Token (empty for none): ")
            let token = line?.trimmingCharacters(in: .whitespaces) ?? ""
            server.token = token.isEmpty ? nil : token
        }
        try await check(server)
        try await SavedServers(in: ClientSettings.directory(environment: environment))
            .save(server, as: name, isDefault: `default`)
        // Until here, it ends the command on a signal.
        withExtendedLifetime(input) {}
        warnOfPublicToken(of: server)
        StandardError.write("Saved. Use it with --server @\(name).\(defaultText)\n")
    }

    /// The default server as a sentence; empty if the other file of the settings has a mistake,
    /// which the next command reports.
    private var defaultText: String {
        let settings = try? ClientSettings.load(environment: environment)
        return settings?.defaultServer.map { " The default server is @\($0)." } ?? ""
    }

    /// Asks the server whether it is a Kedge and takes the token.
    private func check(_ server: NamedServer) async throws {
        var configuration = ClientConfiguration(serverURL: server.url)
        configuration.token = try await server.credential()
        configuration.caFile = server.caFile
        do {
            let client = try await TransferClient(configuration: configuration)
            _ = try await client.remote.examine()
            // Any token may ask for its owner. A server of an earlier version does not report it.
            if try await client.remote.owner() == nil {
                _ = try await client.remote.listFiles(limit: 1)
            }
            try await client.close()
        } catch let error as TransferError {
            let mayForce = Self.meansNoAnswer(error.code)
            guard force, mayForce else {
                let hint = mayForce ? "; --force saves it anyway" : ""
                throw CommandFailure(
                    "kedge: \(error) Nothing was saved\(hint).",
                    exitStatus: error.code.facts.exitStatus)
            }
        }
    }

    /// Whether no Kedge answers at the address now: it is unreachable or unavailable, a portal
    /// answers in its place, or a server of another upload protocol. Anything else is a mistake in
    /// the command, or a refusal of the token.
    private static func meansNoAnswer(_ code: ErrorCode) -> Bool {
        code.facts.exitStatus == ExitStatus.network || code == .notKedge
    }
}
