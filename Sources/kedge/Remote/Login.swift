internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import Yams

/// `kedge login`
struct Login: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Save a server and its token under a name.",
        discussion: """
            Afterwards `kedge upload @NAME FILE` or `--server @NAME` uses them; the first server \
            becomes the default. The token is read from the terminal or from standard input, and \
            may be empty. It is saved in $XDG_CONFIG_HOME/kedge/servers.yaml, which only you can \
            read. --token-command and --token-file save where the token comes from instead.

            The server is asked first; --force saves it although it does not answer.
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
        var server = NamedServer(url: url)
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
        try save(server)
        // Until here, it ends the command on a signal.
        withExtendedLifetime(input) {}
        StandardError.write("Saved. Use it with --server @\(name).\n")
    }

    /// Asks the server whether it is a Kedge and takes the token.
    private func check(_ server: NamedServer) async throws {
        var configuration = ClientConfiguration(serverURL: server.url)
        configuration.token = try server.credential()
        configuration.caFile = server.caFile
        do {
            let client = try await TransferClient(configuration: configuration)
            _ = try await client.remote.examine()
            _ = try await client.remote.listFiles(limit: 1)
            try await client.close()
        } catch let error as TransferError {
            guard force else {
                throw CommandFailure(
                    "kedge: \(error) Nothing was saved; --force saves it anyway.",
                    exitStatus: error.code.facts.exitStatus)
            }
        }
    }

    /// Replaces the file in one step, with the new server added.
    private func save(_ server: NamedServer) throws {
        let directory = ClientSettings.directory(environment: environment)
        let path = "\(directory)/servers.yaml"
        var root: [String: Any] = [:]
        if FileManager.default.fileExists(atPath: path) {
            // Saved servers must not be lost because the file cannot be read.
            guard let text = try? String(contentsOfFile: path, encoding: .utf8),
                let saved = try? Yams.load(yaml: text) as? [String: Any],
                saved["servers"] == nil || saved["servers"] is [String: Any]
            else {
                throw CommandFailure(
                    "kedge: \(path) cannot be read; correct it or move it away. Nothing was saved.",
                    exitStatus: ExitStatus.usage)
            }
            root = saved
        }
        var servers = root["servers"] as? [String: Any] ?? [:]
        let members = [
            "url": server.url, "token": server.token, "tokenFile": server.tokenFile,
            "tokenCommand": server.tokenCommand, "caFile": server.caFile,
        ]
        servers[name] = members.compactMapValues { $0 }
        root["servers"] = servers
        if `default` || root["server"] == nil { root["server"] = name }
        let text = "# Written by kedge login.\n" + (try Yams.dump(object: root, sortKeys: true))
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            let temporary = "\(path).\(UInt32.random(in: 0 ... .max))"
            // Private from the start: it has tokens.
            let descriptor = unsafe open(
                temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try file.write(contentsOf: Data(text.utf8))
            try file.synchronize()
            guard unsafe rename(temporary, path) == 0 else {
                throw CocoaError(.fileWriteUnknown)
            }
        } catch {
            throw CommandFailure(
                "kedge: \(path) cannot be written: \(error.localizedDescription)",
                exitStatus: ExitStatus.failure)
        }
    }
}
