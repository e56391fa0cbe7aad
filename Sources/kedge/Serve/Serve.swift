internal import ArgumentParser
internal import Foundation
internal import KedgeFiles
internal import KedgeModel
internal import KedgeServer

/// `kedge serve`
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Start the service.",
        discussion: "Flags override KEDGE_* variables, which override the file and the defaults.")

    @Option(help: "YAML file with settings.", completion: .file()) var config: String?
    @Flag(help: "Print the settings in force as YAML and exit.") var printConfig = false
    @Flag(help: "Check the settings and exit, without a change and without the stores.")
    var checkConfig = false
    @OptionGroup var settings: ServerSettings

    func run() async throws {
        let loader = try await settings.load(config: config)
        let configuration = try await checked { try loader.configuration() }
        guard !printConfig else { return StandardOutput.write(loader.printed()) }
        guard !checkConfig else {
            try await checked { try ListenPolicy.check(configuration) }
            for warning in ListenPolicy.warnings(of: configuration) {
                StandardError.write("kedge: \(printable(warning))\n")
            }
            return StandardError.write("The settings are valid.\n")
        }
        try await ServerProcess(configuration: configuration).run()
    }
}

/// `kedge migrate`
struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Migrate the database to the schema of this version and exit.")

    @Option(help: "YAML file with settings.", completion: .file()) var config: String?
    @OptionGroup var settings: ServerSettings

    func run() async throws {
        let loader = try await settings.load(config: config)
        var configuration = try await checked { try loader.configuration() }
        // The command measures nothing, and has no log for the warning.
        configuration.durability = .on
        let stores = try await Stores.open(configuration)
        try await stores.close()
        StandardError.write("The database has this version's schema.\n")
    }
}

/// The flags of all server settings; see ``ConfigurationKey``.
struct ServerSettings: ParsableArguments {
    @Option(help: help(.host)) var host: String?
    @Option(help: help(.port)) var port: String?
    @Option(help: help(.allowedHosts)) var allowedHosts: String?
    @Option(help: help(.allowAnyHost)) var allowAnyHost: String?
    @Option(help: help(.publicAddress)) var publicAddress: String?
    @Option(help: help(.trustedProxies)) var trustedProxies: String?
    @Option(help: help(.data)) var data: String?
    @Option(help: help(.metadata)) var metadata: String?
    @Option(help: help(.bytes)) var bytes: String?
    @Option(help: help(.durability)) var durability: String?
    @Option(help: help(.hashPath)) var hashPath: String?
    @Option(help: help(.logLevel)) var logLevel: String?
    @Option(help: help(.logFormat)) var logFormat: String?
    @Option(help: help(.logAudit)) var logAudit: String?
    @Option(help: help(.maxFileSize)) var limitsMaxFileSize: String?
    @Option(help: help(.minChunkSize)) var limitsMinChunkSize: String?
    @Option(help: help(.maxChunkSize)) var limitsMaxChunkSize: String?
    @Option(help: help(.defaultChunkSize)) var limitsDefaultChunkSize: String?
    @Option(help: help(.maxConcurrentWrites)) var limitsMaxConcurrentWrites: String?
    @Option(help: help(.maxConnections)) var limitsMaxConnections: String?
    @Option(help: help(.maxOpenSessions)) var limitsMaxOpenSessions: String?
    @Option(help: help(.emptySessionLifetime)) var sessionEmptyLifetimeSeconds: String?
    @Option(help: help(.sessionLifetime)) var sessionLifetimeSeconds: String?
    @Option(help: help(.sessionGrace)) var sessionGraceSeconds: String?
    @Option(help: help(.idleTimeout)) var timeoutsIdleSeconds: String?
    @Option(help: help(.minBodyRate)) var timeoutsMinBodyBytesPerSecond: String?
    @Option(help: help(.minAnswerRate)) var timeoutsMinAnswerBytesPerSecond: String?
    @Option(help: help(.drainTimeout)) var shutdownDrainSeconds: String?
    @Option(help: help(.storageReserve)) var storageReserveBytes: String?
    @Option(help: help(.storageAllow)) var storageAllow: String?
    @Option(help: help(.sweepInterval)) var sweepIntervalSeconds: String?
    @Option(help: help(.scrubNewFilesWithin)) var scrubNewFilesWithin: String?
    @Option(help: help(.scrubPeriod)) var scrubPeriod: String?
    @Option(help: help(.scrubRate)) var scrubBytesPerSecond: String?
    @Option(help: help(.tusPath)) var tusPath: String?
    @Option(help: help(.uploadTargets)) var uploadsTargets: String?
    @Option(help: help(.interim)) var resumableUploadInterim: String?
    @Option(help: help(.corsOrigins)) var corsAllowedOrigins: String?
    @Option(help: help(.metricsListen)) var metricsListen: String?
    @Option(help: help(.identityMode)) var identityMode: String?
    @Option(name: .customLong("identity-plain-http"), help: help(.identityPlainHTTP))
    var identityPlainHTTP: String?
    @Option(help: help(.tlsCertificate), completion: .file()) var tlsCertificate: String?
    @Option(help: help(.tlsKey), completion: .file()) var tlsKey: String?
    @Option(help: help(.tlsMinimum)) var tlsMinimum: String?
    @Option(help: help(.masterKeyFile), completion: .file()) var secretsMasterKeyFile: String?
    @Option(help: help(.quotaStoredBytes)) var quotaStoredBytes: String?
    @Option(help: help(.quotaOpenSessions)) var quotaOpenSessions: String?
    @Option(help: help(.quotaFileBytes)) var quotaFileBytes: String?
    @Option(help: help(.oidcIssuers)) var oidcIssuers: String?
    @Option(help: help(.oidcAudience)) var oidcAudience: String?
    @Option(help: help(.oidcOwnerClaim)) var oidcOwnerClaim: String?
    @Option(help: help(.oidcScopeClaim)) var oidcScopeClaim: String?
    @Option(help: help(.oidcDefaultScopes)) var oidcDefaultScopes: String?
    @Option(help: help(.oidcAdminClaim)) var oidcAdminClaim: String?
    @Option(help: help(.proxyIdentityHeader)) var proxyIdentityHeader: String?
    @Option(help: help(.proxySecretFile)) var proxySecretFile: String?
    @Option(help: help(.proxyScopes)) var proxyScopes: String?
    @Option(help: help(.rateRequests)) var rateRequestsPerSecond: String?
    @Option(help: help(.rateCreates)) var rateCreatesPerMinute: String?
    @Option(help: help(.rateFailedAuthentications))
    var rateFailedAuthenticationsPerSecond: String?
    @Option(help: help(.linksInLocation)) var linksInLocation: String?
    @Option(help: help(.linksMaxLifetime)) var linksMaxLifetime: String?

    private var values: [ConfigurationKey: String?] {
        [
            .host: host, .port: port, .allowedHosts: allowedHosts,
            .allowAnyHost: allowAnyHost, .publicAddress: publicAddress,
            .data: data, .metadata: metadata, .bytes: bytes, .durability: durability,
            .hashPath: hashPath,
            .logLevel: logLevel, .logFormat: logFormat, .maxFileSize: limitsMaxFileSize,
            .minChunkSize: limitsMinChunkSize, .maxChunkSize: limitsMaxChunkSize,
            .defaultChunkSize: limitsDefaultChunkSize,
            .maxConcurrentWrites: limitsMaxConcurrentWrites,
            .maxConnections: limitsMaxConnections, .sessionLifetime: sessionLifetimeSeconds,
            .maxOpenSessions: limitsMaxOpenSessions,
            .emptySessionLifetime: sessionEmptyLifetimeSeconds,
            .sessionGrace: sessionGraceSeconds, .idleTimeout: timeoutsIdleSeconds,
            .minBodyRate: timeoutsMinBodyBytesPerSecond,
            .minAnswerRate: timeoutsMinAnswerBytesPerSecond, .trustedProxies: trustedProxies,
            .drainTimeout: shutdownDrainSeconds,
            .storageReserve: storageReserveBytes, .storageAllow: storageAllow,
            .sweepInterval: sweepIntervalSeconds,
            .scrubNewFilesWithin: scrubNewFilesWithin, .scrubPeriod: scrubPeriod,
            .scrubRate: scrubBytesPerSecond,
            .tusPath: tusPath, .uploadTargets: uploadsTargets,
            .interim: resumableUploadInterim, .corsOrigins: corsAllowedOrigins,
            .metricsListen: metricsListen,
            .identityMode: identityMode, .identityPlainHTTP: identityPlainHTTP,
            .tlsCertificate: tlsCertificate, .tlsKey: tlsKey, .tlsMinimum: tlsMinimum,
            .masterKeyFile: secretsMasterKeyFile,
            .quotaStoredBytes: quotaStoredBytes, .quotaOpenSessions: quotaOpenSessions,
            .quotaFileBytes: quotaFileBytes,
            .oidcIssuers: oidcIssuers, .oidcAudience: oidcAudience,
            .oidcOwnerClaim: oidcOwnerClaim, .oidcScopeClaim: oidcScopeClaim,
            .oidcDefaultScopes: oidcDefaultScopes, .oidcAdminClaim: oidcAdminClaim,
            .proxyIdentityHeader: proxyIdentityHeader, .proxySecretFile: proxySecretFile,
            .logAudit: logAudit,
            .proxyScopes: proxyScopes, .rateRequests: rateRequestsPerSecond,
            .rateCreates: rateCreatesPerMinute,
            .rateFailedAuthentications: rateFailedAuthenticationsPerSecond,
            .linksInLocation: linksInLocation, .linksMaxLifetime: linksMaxLifetime,
        ]
    }

    /// Reads flags, environment and file.
    func load(config: String?) async throws -> ConfigurationLoader {
        let environment = ProcessInfo.processInfo.environment
        return try await checked {
            try await ConfigurationLoader(
                flags: values.compactMapValues { $0 }, environment: environment,
                file: config ?? environment["KEDGE_CONFIG"])
        }
    }

    private static func help(_ key: ConfigurationKey) -> ArgumentHelp {
        "\(key.summary) (default: \(key.defaultValue))"
    }
}

/// Turns a configuration error into its exit status.
func checked<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as ConfigurationError {
        throw CommandFailure("kedge: \(error)", exitStatus: ExitStatus.configuration)
    } catch let error as MasterKeyFileError {
        throw CommandFailure("kedge: \(error)", exitStatus: ExitStatus.configuration)
    } catch let error as ForeignMasterKey {
        throw CommandFailure("kedge: \(error)", exitStatus: ExitStatus.configuration)
    }
}
