internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import KedgeServer
internal import Logging

/// What every command that talks to a server takes.
struct ClientOptions: ParsableArguments {
    @Option(help: "URL of the server (or KEDGE_SERVER).") var server: String?
    @Option(help: "Token for the server (better: KEDGE_TOKEN).") var token: String?
    @Option(help: "Directory of the transfer records (default: $XDG_STATE_HOME/kedge).")
    var stateDirectory: String?
    @Option(
        help: "PEM file of the certificate authorities to trust (or SSL_CERT_FILE).",
        completion: .file())
    var caFile: String?
    @Flag(help: "Writes JSON, one object a line, to standard output.") var json = false
    @Flag(name: .shortAndLong, help: "Says nothing but errors.") var quiet = false

    @Flag(help: "Writes the client's log to standard error.") var verbose = false

    /// Stands in where no server is asked anything, and is sent nothing: the address of `make run`.
    private static let localServer = "http://127.0.0.1:8080"

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    private var namedServer: String? { server ?? environment["KEDGE_SERVER"] }

    /// A client of the server named by flag or variable. Without one it has no token either.
    ///
    /// - Throws: ``CommandFailure`` when none is named and the command needs one.
    func makeClient(
        needsServer: Bool = true, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        guard needsServer, namedServer == nil else {
            return try await makeClient(of: namedServer, adjust)
        }
        throw CommandFailure(
            "kedge: name the server with --server or KEDGE_SERVER.", exitStatus: ExitStatus.usage)
    }

    /// A client for a transfer that is there already: of the named server, or else of its own, which
    /// then gets the token.
    func makeClient(
        for id: TransferID, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        let client = try await makeClient(needsServer: false, adjust)
        guard namedServer == nil else { return client }
        let snapshot: TransferSnapshot
        do {
            snapshot = try await reporting { try await client.transfer(id) }
        } catch {
            // The first error is the one to tell; nothing was changed.
            try? await client.close()
            throw error
        }
        // A URL was fetched without naming a server: the one in its record only stands in.
        let isForeign = snapshot.direction == .download && snapshot.remoteFileID == nil
        guard !isForeign || snapshot.serverURL != Self.localServer else { return client }
        try await reporting { try await client.close() }
        return try await makeClient(of: snapshot.serverURL, adjust)
    }

    /// - Parameter url: Nil for the stand-in without a token.
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

    /// Silent unless asked for: what matters to the person is in the snapshots.
    private var logger: Logger {
        let isVerbose = verbose && !quiet
        return Logger(label: "kedge.client") { label in
            guard isVerbose else { return SwiftLogNoOpLogHandler() }
            return LogLines(label: label, format: .text, level: .debug)
        }
    }
}

extension ClientOptions {
    /// Lends a client for one piece of work and closes it afterwards.
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
            // The first error is the one to tell; records are durable without closing.
            try? await client.close()
            throw error
        }
        try await reporting { try await client.close() }
    }
}

/// Turns a client's error into a message and the exit status of the table.
func reporting<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as TransferError {
        throw CommandFailure("kedge: \(error)", exitStatus: error.code.facts.exitStatus)
    }
}

/// An id from the command line.
func identifier<ID: RandomIdentifier>(_ type: ID.Type, _ text: String) throws -> ID {
    guard let id = ID(text) else {
        throw CommandFailure(
            "kedge: \(text) is not an id of 32 hexadecimal digits.", exitStatus: ExitStatus.usage)
    }
    return id
}
