internal import ArgumentParser
internal import Foundation
internal import KedgeModel
internal import KedgeServer

/// Options of the commands for tokens, owners and keys that name the stores.
struct TokenOptions: ParsableArguments {
    @Option(help: "Data directory of the service.", completion: .directory)
    var data: String?
    @Option(help: "YAML file with the settings of the service.", completion: .file())
    var config: String?
    @Option(help: "\(ConfigurationKey.metadata.summary)") var metadata: String?

    /// Whether any option is given.
    var areGiven: Bool { data != nil || config != nil || metadata != nil }

    /// Loads the settings of the service, to open its stores.
    ///
    /// - Throws: The errors of ``configuration(masterKeyFile:)``.
    func opening(
        mayCreate: Bool, masterKeyFile: String? = nil
    ) async throws -> TokenStoreOpening {
        var opening = TokenStoreOpening(
            try await configuration(masterKeyFile: masterKeyFile), mayCreate: mayCreate)
        // Its socket has no operations on keys.
        opening.adviceInUse = "; stop it first"
        return opening
    }

    /// Loads the settings of the service.
    ///
    /// - Throws: ``CommandFailure`` for invalid settings, or if the location of the data directory
    ///   is not named: a token in a directory that happens to be here would be useless.
    func configuration(masterKeyFile: String? = nil) async throws -> ServiceConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let flags: [ConfigurationKey: String?] = [
            .data: data, .metadata: metadata, .masterKeyFile: masterKeyFile,
        ]
        let file = config ?? environment["KEDGE_CONFIG"]
        let configuration = try await checked {
            try await ConfigurationLoader(
                flags: flags.compactMapValues { $0 }, environment: environment, file: file
            ).configuration()
        }
        guard isDirectoryNamed(configuration) || configuration.metadata != .sqlite else {
            throw CommandFailure(
                "kedge: no data directory; set --data to that of the service",
                exitStatus: ExitStatus.usage)
        }
        return configuration
    }

    /// Whether the settings name a data directory. A relative one in a file depends on the
    /// directory in which the service starts.
    func isDirectoryNamed(_ configuration: ServiceConfiguration) -> Bool {
        let environment = ProcessInfo.processInfo.environment
        return data != nil || environment[ConfigurationKey.data.environmentName] != nil
            || configuration.dataDirectory.hasPrefix("/")
    }
}
