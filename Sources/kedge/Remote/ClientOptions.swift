internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import KedgeServer
internal import Logging

/// Options shared by all commands that use a server or the transfer records.
struct ClientOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "URL of the server, or @NAME of the settings (or set KEDGE_SERVER).",
            valueName: "url"), completion: .custom { _, _, _ in await ServerCompletion.names() })
    var server: String?
    @Option(
        help: ArgumentHelp(
            "Token for the server (better: `kedge login`, or KEDGE_TOKEN).", valueName: "token"))
    var token: String?
    @Option(
        help: ArgumentHelp(
            "Directory of the transfer records (default: $XDG_STATE_HOME/kedge).",
            valueName: "folder"), completion: .directory)
    var stateDirectory: String?
    @Option(
        help: ArgumentHelp(
            "PEM file of the certificate authorities to trust (or SSL_CERT_FILE).",
            valueName: "file"),
        completion: .file())
    var caFile: String?
    @Flag(help: "Write JSON to standard output, one object per line.") var json = false
    @Flag(name: .shortAndLong, help: "Print only errors.") var quiet = false

    @Option(
        help: ArgumentHelp(
            "Use colours on a terminal (auto honours NO_COLOR).", valueName: "when"))
    var color = ColorChoice.auto
    @Flag(
        name: .shortAndLong,
        help: "Log each request to standard error; twice (-vv): also the fields of the answers.")
    var verbose: Int
    @Option(
        help: ArgumentHelp("Append the log to a file instead.", valueName: "file"),
        completion: .file())
    var logFile: String?

    /// Placeholder where no server is contacted: the address of `make run`.
    static let localServer = "http://127.0.0.1:8080"

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    /// Takes a first word `@NAME` as the server, whether there is a file of that name or not. Such
    /// a file is named `./@NAME`, or after `--`.
    ///
    /// - Throws: `ValidationError` for a later word that can only be meant as a server.
    mutating func takeServer(from words: inout [String]) throws {
        // The parser does not keep the terminator.
        let fileCount = CommandLine.arguments.drop { $0 != "--" }.dropFirst().count
        if server == nil, words.count > fileCount, let first = words.first, Self.isName(first) {
            server = words.removeFirst()
        }
        for word in words.prefix(max(0, words.count - fileCount)) where Self.isName(word) {
            guard !FileManager.default.fileExists(atPath: word) else { continue }
            throw ValidationError(
                "There is no file \(word). A server is the first word: \(word) before all others.")
        }
    }

    private static func isName(_ word: String) -> Bool { word.hasPrefix("@") && word.count > 1 }

    /// Whether log lines go where progress is shown.
    var isLoggingToTerminal: Bool { verbose > 0 && logFile == nil }

    /// Reads the settings, and looks up the server that a flag, variable or the settings name.
    ///
    /// - Parameter isOffline: Whether no credentials are needed.
    private func named(
        isOffline: Bool = false
    ) throws -> (settings: ClientSettings, server: NamedServer?) {
        let settings = try ClientSettings.load(environment: environment)
        let given = server ?? environment["KEDGE_SERVER"]
        // A link names the server, too, but is no credential for other requests.
        let name =
            given.map { ServiceLink($0)?.serverURL ?? $0 }
            ?? settings.defaultServer.map { "@\($0)" }
        let needsAccount = !isOffline && token == nil
        return (settings, try name.map { try settings.server($0, needsAccount: needsAccount) })
    }

    /// Creates a client of the server named by flag or variable. Without a server, it has no token
    /// either.
    ///
    /// - Parameters:
    ///   - isOffline: Whether only records are used. No token is looked up then: a command of the
    ///     settings might ask the user for a password.
    ///   - urls: URLs to download. Those of servers of the settings get the tokens there.
    /// - Throws: ``CommandFailure`` if no server is named and the command needs one.
    func makeClient(
        needsServer: Bool = true, isOffline: Bool = false, urls: [String] = [],
        _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        let (settings, server) = try named(isOffline: isOffline)
        guard !isOffline else { return try await makeClient(of: nil, settings, adjust) }
        guard needsServer, server == nil else {
            let tokens = try await settings.commandTokens(forServersOf: urls, besides: server?.url)
            return try await makeClient(of: server, settings) {
                $0.otherTokens.merge(tokens) { own, _ in own }
                adjust(&$0)
            }
        }
        throw CommandFailure(
            "kedge: no server; set --server or KEDGE_SERVER, or a default with `kedge login`.",
            exitStatus: ExitStatus.usage)
    }

    /// Creates a client for an existing transfer: of the named server, or else of the transfer's
    /// own, which then receives the token.
    func makeClient(
        for id: TransferID, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        guard server == nil, environment["KEDGE_SERVER"] == nil else {
            return try await makeClient(needsServer: false, adjust)
        }
        let client = try await makeClient(isOffline: true, adjust)
        let snapshot: TransferSnapshot
        do {
            snapshot = try await reporting { try await client.transfer(id) }
        } catch {
            // The first error is the one to report; nothing was changed.
            try? await client.close()
            throw error
        }
        // The record of a URL fetched without naming a server has the placeholder.
        let isForeign = snapshot.direction == .download && snapshot.remoteFileID == nil
        guard !isForeign || snapshot.serverURL != Self.localServer else { return client }
        try await reporting { try await client.close() }
        let settings = try named(isOffline: true).settings
        let own = try settings.server(snapshot.serverURL, needsAccount: token == nil)
        return try await makeClient(of: own, settings, adjust)
    }

    /// Returns the link that `--server` or KEDGE_SERVER names; nil for a server. Call it once,
    /// because it may read standard input.
    func link() throws -> ServiceLink? {
        guard let name = server ?? environment["KEDGE_SERVER"] else { return nil }
        return try LinkArgument.url(name).flatMap { ServiceLink($0) }
    }

    /// Creates a client of the server that a link names. It has no token: the link is the only
    /// credential.
    func makeClient(
        by link: ServiceLink, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        let settings = try ClientSettings.load(environment: environment)
        let server = try settings.server(link.serverURL, needsAccount: false)
        return try await makeClient(of: server, settings, sendsToken: false, adjust)
    }

    /// - Parameters:
    ///   - server: Nil for the placeholder without a token.
    ///   - sendsToken: Whether the server gets the user's token.
    private func makeClient(
        of server: NamedServer?, _ settings: ClientSettings, sendsToken: Bool = true,
        _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(serverURL: server?.url ?? Self.localServer)
        if let server, sendsToken { configuration.token = try await credential(for: server) }
        if let server, configuration.token != nil, token == nil {
            let renewal = TokenRenewal(server: server, environment: environment)
            configuration.getToken = { try await renewal() }
        }
        configuration.otherTokens = settings.tokens(besides: server?.url)
        configuration.caFile = caFile
        configuration.originSettings = settings.originSettings(choosing: server)
        if caFile != nil {
            // The flag counts for every server.
            for origin in configuration.originSettings.keys {
                configuration.originSettings[origin]?.caFile = nil
            }
        }
        configuration.connections = settings.connections
        configuration.bandwidth = BandwidthLimit(settings.bandwidth)
        configuration.stateDirectory = stateDirectory
        configuration.logger = try logger()
        adjust(&configuration)
        let client = try await reporting { try await TransferClient(configuration: configuration) }
        if let age = settings.keepRecords {
            // Records of failed transfers stay: they say what is missing.
            await client.pruneRecords(olderThan: age)
        }
        return client
    }

    /// Returns the token for a server; nil for none.
    ///
    /// The server's own token is more specific than the variable, which counts for every server
    /// that a command uses.
    private func credential(for server: NamedServer) async throws -> String? {
        if let token {
            guard !token.isEmpty else {
                throw CommandFailure("kedge: --token is empty.", exitStatus: ExitStatus.usage)
            }
            return token
        }
        if !quiet { warnOfPublicToken(of: server) }
        // An empty variable counts as unset.
        let variable = environment["KEDGE_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
        return try await server.credential() ?? variable
    }

    /// Silent unless requested: the snapshots report everything important to the user.
    private func logger() throws -> Logger {
        let level: Logger.Level = verbose > 1 ? .trace : .debug
        guard let logFile else {
            let isVerbose = verbose > 0 && !quiet
            return Logger(label: "kedge.client") { label in
                guard isVerbose else { return SwiftLogNoOpLogHandler() }
                return LogLines(label: label, format: .text, level: level)
            }
        }
        let file = try LogFile(at: logFile)
        return Logger(label: "kedge.client") { label in
            LogLines(label: label, format: .text, level: level) { file.append($0) }
        }
    }
}

extension ClientOptions {
    /// Lends a client to the closure and closes it afterwards.
    func withClient(
        needsServer: Bool = true, _ body: (TransferClient) async throws -> Void
    ) async throws {
        try await lend(
            try await makeClient(needsServer: needsServer, isOffline: !needsServer), to: body)
    }

    /// Lends the client and closes it afterwards.
    func lend(
        _ client: TransferClient, to body: (TransferClient) async throws -> Void
    ) async throws {
        do {
            try await reporting { try await body(client) }
        } catch {
            // The first error is the one to report; records are durable without closing.
            try? await client.close()
            throw error
        }
        try await reporting { try await client.close() }
    }
}

/// Turns a client's error into a message and its exit status.
func reporting<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as TransferError {
        throw CommandFailure("kedge: \(error)", exitStatus: error.code.facts.exitStatus)
    }
}
