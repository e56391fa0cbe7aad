internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import KedgeServer
internal import Logging

/// Options shared by all commands that use a server or the transfer records.
struct ClientOptions: ParsableArguments {
    @Option(help: "URL of the server (or set KEDGE_SERVER).") var server: String?
    @Option(help: "Token for the server (better: set KEDGE_TOKEN).") var token: String?
    @Option(help: "Directory of the transfer records (default: $XDG_STATE_HOME/kedge).")
    var stateDirectory: String?
    @Option(
        help: "PEM file of the certificate authorities to trust (or SSL_CERT_FILE).",
        completion: .file())
    var caFile: String?
    @Flag(help: "Write JSON to standard output, one object per line.") var json = false
    @Flag(name: .shortAndLong, help: "Print only errors.") var quiet = false

    @Option(help: "Use colours on a terminal: auto, always or never (auto honours NO_COLOR).")
    var color = ColorChoice.auto
    @Flag(help: "Write the client's log to standard error.") var verbose = false

    /// Placeholder where no server is contacted: the address of `make run`.
    static let localServer = "http://127.0.0.1:8080"

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    private var namedServer: String? { server ?? environment["KEDGE_SERVER"] }

    /// Creates a client of the server named by flag or variable. Without a server, it has no token
    /// either.
    ///
    /// - Throws: ``CommandFailure`` if no server is named and the command needs one.
    func makeClient(
        needsServer: Bool = true, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        guard needsServer, namedServer == nil else {
            return try await makeClient(of: namedServer, adjust)
        }
        throw CommandFailure(
            "kedge: no server; set --server or KEDGE_SERVER.", exitStatus: ExitStatus.usage)
    }

    /// Creates a client for an existing transfer: of the named server, or else of the transfer's
    /// own, which then receives the token.
    func makeClient(
        for id: TransferID, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        let client = try await makeClient(needsServer: false, adjust)
        guard namedServer == nil else { return client }
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
        return try await makeClient(of: snapshot.serverURL, adjust)
    }

    /// - Parameter url: Nil for the placeholder without a token.
    private func makeClient(
        of url: String?, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(serverURL: url ?? Self.localServer)
        configuration.token = url == nil ? nil : token ?? environment["KEDGE_TOKEN"]
        configuration.stateDirectory = stateDirectory
        configuration.caFile = caFile
        configuration.logger = logger
        adjust(&configuration)
        return try await reporting { try await TransferClient(configuration: configuration) }
    }

    /// Silent unless requested: the snapshots report everything important to the user.
    private var logger: Logger {
        let isVerbose = verbose && !quiet
        return Logger(label: "kedge.client") { label in
            guard isVerbose else { return SwiftLogNoOpLogHandler() }
            return LogLines(label: label, format: .text, level: .debug)
        }
    }
}

extension ClientOptions {
    /// Lends a client to the closure and closes it afterwards.
    func withClient(
        needsServer: Bool = true, _ body: (TransferClient) async throws -> Void
    ) async throws {
        try await lend(try await makeClient(needsServer: needsServer), to: body)
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
