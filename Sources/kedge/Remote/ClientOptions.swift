internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// What every command that talks to a server takes.
struct ClientOptions: ParsableArguments {
    @Option(help: "URL of the server (or KEDGE_SERVER).") var server: String?
    @Option(help: "Token for the server (better: KEDGE_TOKEN).") var token: String?
    @Option(help: "Directory of the transfer records (default: $XDG_STATE_HOME/kedge).")
    var stateDirectory: String?
    @Flag(help: "Writes JSON, one object a line, to standard output.") var json = false
    @Flag(name: .shortAndLong, help: "Says nothing but errors.") var quiet = false

    /// Where `make run` serves; stands in where no server is asked anything.
    private static let localServer = "http://127.0.0.1:8080"

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    /// A client of the server named by flag or variable.
    ///
    /// - Throws: ``CommandFailure`` when none is named and the command needs one.
    func makeClient(
        needsServer: Bool = true, _ adjust: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        guard
            let url = server ?? environment["KEDGE_SERVER"]
                ?? (needsServer ? nil : Self.localServer)
        else {
            throw CommandFailure(
                "kedge: name the server with --server or KEDGE_SERVER.",
                exitStatus: ExitStatus.usage)
        }
        var configuration = ClientConfiguration(serverURL: url)
        configuration.token = token ?? environment["KEDGE_TOKEN"]
        configuration.stateDirectory = stateDirectory
        adjust(&configuration)
        return try await reporting { try await TransferClient(configuration: configuration) }
    }
}

extension ClientOptions {
    /// Lends a client for one piece of work and closes it afterwards.
    func withClient(
        needsServer: Bool = true, _ body: (TransferClient) async throws -> Void
    ) async throws {
        let client = try await makeClient(needsServer: needsServer)
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
