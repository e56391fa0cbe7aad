internal import Configuration
internal import Foundation
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
internal import KedgeIdentity
internal import KedgeModel
internal import KedgeTLS
internal import Logging
internal import SystemPackage
internal import Yams

/// Reads the configuration from flags, environment, file and defaults, in that order of precedence.
package struct ConfigurationLoader {
    /// Values by key.
    package private(set) var values: [ConfigurationKey: String] = [:]
    /// Where each value that is not a default was set: a flag, a variable, or a file with its line.
    private var origins: [ConfigurationKey: String] = [:]

    /// Variables of other parts of Kedge, which this loader accepts and ignores.
    private static let otherVariables: Set<String> = [
        "KEDGE_SERVER", "KEDGE_TOKEN", "KEDGE_CONFIG",
    ]

    /// - Parameters:
    ///   - flags: Values from the command line.
    ///   - environment: The process environment.
    ///   - file: Path of a YAML file; nil for none.
    /// - Throws: ``ConfigurationError`` for unknown keys and for a file that cannot be read.
    package init(
        flags: [ConfigurationKey: String], environment: [String: String], file: String?
    ) async throws {
        try Self.refuseUnknown(environment)
        var providers: [any ConfigProvider] = [
            InMemoryProvider(
                name: "flags",
                values: Dictionary(
                    uniqueKeysWithValues: flags.map { key, value in
                        (
                            AbsoluteConfigKey(Self.components(of: key)),
                            ConfigValue(.string(value), isSecret: false)
                        )
                    })),
            EnvironmentVariablesProvider(environmentVariables: environment)
                .prefixKeys(with: "kedge"),
        ]
        if let file, let provider = try await Self.fileProvider(file, &origins) {
            providers.append(provider)
        }
        for key in ConfigurationKey.allCases {
            if environment[key.environmentName] != nil { origins[key] = key.environmentName }
            if flags[key] != nil { origins[key] = "--\(key.flagName)" }
        }
        let reader = ConfigReader(providers: providers)
        for key in ConfigurationKey.allCases {
            values[key] =
                reader.string(forKey: ConfigKey(Self.components(of: key))) ?? key.defaultValue
        }
    }

    private static func components(of key: ConfigurationKey) -> [String] {
        key.rawValue.split(separator: ".").map(String.init)
    }

    private static func refuseUnknown(_ environment: [String: String]) throws {
        let known = Set(ConfigurationKey.allCases.map(\.environmentName)).union(otherVariables)
        for name in environment.keys.sorted() where name.hasPrefix("KEDGE_") {
            guard known.contains(name) else {
                throw ConfigurationError(
                    "The environment variable \(name) is not a setting."
                        + NearestName.question(about: name, in: known.sorted()))
            }
        }
    }

    /// Returns nil for a file that sets nothing.
    ///
    /// - Throws: ``ConfigurationError`` with a message of one line.
    private static func fileProvider(
        _ path: String, _ origins: inout [ConfigurationKey: String]
    ) async throws -> (any ConfigProvider)? {
        let text = try ConfigurationFile.text(at: path)
        do {
            guard let node = try Yams.compose(yaml: text) else { return nil }
            guard node.mapping != nil else {
                throw ConfigurationError(
                    "The configuration file \(ConfigurationFile.oneLine(path)) is not a mapping of"
                        + " settings.")
            }
            try note(node, at: [], on: nil, of: path, &origins)
            return try await FileProvider<YAMLSnapshot>(filePath: FilePath(path))
        } catch let error as ConfigurationError {
            throw error
        } catch {
            throw ConfigurationFile.mistake(in: path, error)
        }
    }

    /// Notes the line of each setting.
    ///
    /// - Throws: ``ConfigurationError`` for anything that is not a setting.
    private static func note(
        _ node: Node, at path: [String], on line: Int?, of file: String,
        _ origins: inout [ConfigurationKey: String]
    ) throws {
        let place = ConfigurationFile.oneLine(file) + (line.map { ":\($0)" } ?? "")
        if let mapping = node.mapping {
            for (key, value) in mapping {
                guard let name = key.string else {
                    throw ConfigurationError("\(place): A name is not text.")
                }
                try note(
                    value, at: path + [name], on: key.mark?.line, of: file, &origins)
            }
            return
        }
        let name = ConfigurationFile.oneLine(path.joined(separator: "."))
        let names = ConfigurationKey.allCases.map(\.rawValue)
        if names.contains(where: { $0.hasPrefix("\(name).") }) {
            throw ConfigurationError(
                "\(place): \(name) is a group of settings, and sets none of them.")
        }
        guard let key = ConfigurationKey(rawValue: name) else {
            throw ConfigurationError(
                "\(place): \(name) is not a setting."
                    + NearestName.question(about: name, in: names))
        }
        guard node.scalar != nil else {
            throw ConfigurationError("\(place): \(name) takes one value, not a list.")
        }
        origins[key] = place
    }

    /// Returns the values as checked types.
    ///
    /// - Throws: ``ConfigurationError`` naming the first value that is wrong.
    package func configuration() throws -> ServiceConfiguration {
        var engine = EngineConfiguration()
        let chunkSizes = (
            try bytes(.minChunkSize, atLeast: 1), try bytes(.maxChunkSize, atLeast: 1)
        )
        guard chunkSizes.0 <= chunkSizes.1 else {
            throw ConfigurationError("limits.minChunkSize is above limits.maxChunkSize.")
        }
        engine.chunkSizes = chunkSizes.0...chunkSizes.1
        engine.defaultChunkSize = try bytes(.defaultChunkSize, atLeast: 1)
        guard engine.chunkSizes.contains(engine.defaultChunkSize) else {
            throw ConfigurationError(
                "limits.defaultChunkSize is not between "
                    + "limits.minChunkSize and limits.maxChunkSize.")
        }
        engine.maxFileSize = try bytes(.maxFileSize, atLeast: 1)
        engine.maxConcurrentWrites = try number(.maxConcurrentWrites, in: 1...10_000)
        engine.maxOpenSessions = try number(.maxOpenSessions, in: 1...100_000_000)
        engine.quota = QuotaLimits(
            storedBytes: try bytes(.quotaStoredBytes, atLeast: 0),
            openSessions: Int64(try number(.quotaOpenSessions, in: 0...100_000_000)),
            fileBytes: try bytes(.quotaFileBytes, atLeast: 0))
        engine.emptySessionLifetime = try seconds(.emptySessionLifetime, atLeast: 1)
        engine.sessionLifetime = try seconds(.sessionLifetime, atLeast: 1)
        engine.expiryGrace = try seconds(.sessionGrace, atLeast: 0)
        engine.scrubNewFilesWithin = try seconds(.scrubNewFilesWithin, atLeast: 1)
        engine.scrubPeriod = try seconds(.scrubPeriod, atLeast: 0)
        engine.scrubBytesPerSecond = try bytes(.scrubRate, atLeast: 1)
        let tusEndpoint = try choice(.tusPath, EndpointPath.init(text:))
        let hosts = text(.allowedHosts).lowercased().split(separator: ",")
            .map { $0.trimmingCharacters(in: .whitespaces) }
        let identityMode = try choice(.identityMode, IdentityMode.init(rawValue:))
        return ServiceConfiguration(
            host: text(.host), port: try number(.port, in: 0...65_535),
            allowedHosts: try safeHosts(hosts),
            publicAddress: try choice(.publicAddress, PublicAddress.init(text:)),
            dataDirectory: text(.data),
            metadata: try choice(.metadata, MetadataLocation.init(text:)),
            bytes: try choice(.bytes, BytesLocation.init(text:)),
            durability: try choice(.durability, Durability.init(rawValue:)),
            hashPath: try hashPath(),
            logLevel: try choice(.logLevel, Logger.Level.init(rawValue:)),
            logFormat: try choice(.logFormat, LogFormat.init(rawValue:)), engine: engine,
            maxConnections: try automatic(.maxConnections, in: 1...1_000_000),
            idleTimeout: try seconds(.idleTimeout, atLeast: 1),
            minBodyBytesPerSecond: try rate(.minBodyRate),
            minAnswerBytesPerSecond: try rate(.minAnswerRate),
            trustedProxies: try choice(.trustedProxies, TrustedProxies.init(text:)),
            drainTimeout: try seconds(.drainTimeout, atLeast: 0),
            storageReserve: try bytes(.storageReserve, atLeast: 0),
            directoryDemands: try choice(.storageAllow, DirectoryRequirements.init(text:)),
            sweepInterval: try seconds(.sweepInterval, atLeast: 1),
            tusEndpoint: tusEndpoint, uploadTargets: try uploadTargets(besides: tusEndpoint),
            interim: try choice(.interim, InterimPolicy.init(rawValue:)),
            cors: try choice(.corsOrigins, CORSPolicy.init(text:)),
            metricsAddress: try metricsAddress(),
            identityMode: identityMode,
            acceptsPlainHTTP: try isOn(.identityPlainHTTP), tls: try tlsSettings(),
            masterKeyPath: text(.masterKeyFile).isEmpty ? nil : text(.masterKeyFile),
            openID: try OpenIDSection(text: text).settings(with: identityMode),
            proxyIdentity: try proxyIdentity(), rates: try rates(),
            audit: try choice(.logAudit, AuditDestination.init(text:)),
            linkPlacement: try choice(.linksInLocation, LinkPlacement.init(rawValue:)),
            maxLinkLifetime: try seconds(.linksMaxLifetime, atLeast: 1))
    }

    /// - Returns: Nil for HTTP without TLS.
    private func tlsSettings() throws -> TLSSettings? {
        let (certificate, key) = (text(.tlsCertificate), text(.tlsKey))
        let minimum = try choice(.tlsMinimum, TLSMinimum.init(rawValue:))
        guard !certificate.isEmpty || !key.isEmpty else { return nil }
        guard !key.isEmpty else {
            throw ConfigurationError("tls.certificate is set without tls.key: set both or neither.")
        }
        guard !certificate.isEmpty else {
            throw ConfigurationError("tls.key is set without tls.certificate: set both or neither.")
        }
        return TLSSettings(certificatePath: certificate, keyPath: key, minimum: minimum)
    }

    private func proxyIdentity() throws -> ProxyIdentitySettings? {
        let scopes = try proxyScopes()
        let secretFile = text(.proxySecretFile)
        guard !text(.proxyIdentityHeader).isEmpty else {
            guard secretFile.isEmpty else {
                throw ConfigurationError(
                    "proxy.secretFile is set and proxy.identityHeader is not: name the field in "
                        + "which the proxy sends the owner.")
            }
            return nil
        }
        return try choice(.proxyIdentityHeader) { header in
            ProxyIdentitySettings(
                header: header, secretFile: secretFile.isEmpty ? nil : secretFile, scopes: scopes)
        }
    }

    private func proxyScopes() throws -> Set<Scope> {
        do {
            let scopes = try Scope.parse(text(.proxyScopes))
            guard !scopes.isEmpty else {
                throw ConfigurationError("proxy.scopes is empty: name a scope or a bundle.")
            }
            return scopes
        } catch let error as UnknownScope {
            throw ConfigurationError("proxy.scopes: \(error)")
        }
    }

    private func rates() throws -> RateSettings {
        var rates = RateSettings()
        rates.requestsPerSecond = try number(.rateRequests, in: 0...1_000_000)
        rates.createsPerMinute = try number(.rateCreates, in: 0...1_000_000)
        rates.failedAuthenticationsPerSecond = try number(
            .rateFailedAuthentications, in: 0...1_000_000)
        return rates
    }

    /// Refuses `*` unless ``ConfigurationKey/allowAnyHost`` is on. With `*`, a page can let its own
    /// name resolve to loopback (DNS rebinding), and its requests then look like those of a local
    /// program.
    private func safeHosts(_ hosts: [String]) throws -> Set<String> {
        let allowsAny = try isOn(.allowAnyHost)
        guard allowsAny || !hosts.contains("*") else {
            throw ConfigurationError(
                "allowedHosts is *: any page opened in a browser on this machine could list, "
                    + "read and delete all files, by DNS rebinding. Name the hosts, or set "
                    + "allowAnyHost to on where no browser runs.")
        }
        return Set(hosts)
    }

    private func isOn(_ key: ConfigurationKey) throws -> Bool {
        try choice(key) { ["on": true, "off": false][$0] }
    }

    /// - Returns: Nil for `auto`.
    /// - Throws: ``ConfigurationError``, also for instructions that the processor lacks.
    private func hashPath() throws -> SHA256PairPath? {
        guard text(.hashPath) != "auto" else { return nil }
        let path = try choice(.hashPath, SHA256PairPath.init(rawValue:))
        guard path.isSupported else {
            let known = SHA256PairPath.supported.map(\.rawValue).joined(separator: ", ")
            throw ConfigurationError(
                "hash.path is \(path.rawValue), which this processor lacks; it has \(known).")
        }
        return path
    }

    private func metricsAddress() throws -> ListenAddress? {
        guard !text(.metricsListen).isEmpty else { return nil }
        return try choice(.metricsListen, ListenAddress.init(text:))
    }

    private func uploadTargets(besides tus: EndpointPath) throws -> [EndpointPath] {
        let targets = try choice(.uploadTargets, EndpointPath.list)
        guard !targets.contains(where: { tus.takes($0) }) else {
            throw ConfigurationError("uploads.targets has a path that belongs to tus.path.")
        }
        return targets
    }

    private func text(_ key: ConfigurationKey) -> String { values[key] ?? key.defaultValue }

    private func bytes(_ key: ConfigurationKey, atLeast minimum: Int64) throws -> Int64 {
        guard let value = Quantity.byteCount(text(key)), value >= minimum else {
            throw ConfigurationError(
                "\(key.rawValue) must be a number of bytes of at least \(minimum), "
                    + "such as 4194304, 4M or 10GiB; \(given(key)).")
        }
        return value
    }

    private func rate(_ key: ConfigurationKey) throws -> Int {
        let value = try bytes(key, atLeast: 0)
        guard value <= 1_000_000_000 else {
            throw ConfigurationError(
                "\(key.rawValue) must be at most 1000000000; \(given(key)).")
        }
        return Int(value)
    }

    private func number(_ key: ConfigurationKey, in range: ClosedRange<Int>) throws -> Int {
        guard let value = WireInteger.parse(text(key)), let number = Int(exactly: value),
            range.contains(number)
        else {
            throw ConfigurationError(
                "\(key.rawValue) must be a whole number from \(range.lowerBound) to "
                    + "\(range.upperBound); \(given(key)).")
        }
        return number
    }

    /// - Returns: Nil for `auto`.
    private func automatic(_ key: ConfigurationKey, in range: ClosedRange<Int>) throws -> Int? {
        text(key) == "auto" ? nil : try number(key, in: range)
    }

    private func seconds(_ key: ConfigurationKey, atLeast minimum: Int64) throws -> Duration {
        guard let value = Quantity.seconds(text(key)), value >= minimum else {
            throw ConfigurationError(
                "\(key.rawValue) must be a number of seconds of at least \(minimum), "
                    + "such as 90, 5m, 2h or 7d; \(given(key)).")
        }
        // A hundred years. Larger values would only overflow in arithmetic.
        guard value <= 3_153_600_000 else {
            throw ConfigurationError(
                "\(key.rawValue) must be at most 3153600000 seconds; \(given(key)).")
        }
        return .seconds(value)
    }

    private func choice<Value>(_ key: ConfigurationKey, _ make: (String) -> Value?) throws -> Value
    {
        guard let value = make(text(key)) else {
            throw ConfigurationError("\(key.rawValue): \(key.summary) \(given(key)).")
        }
        return value
    }

    /// Names the value of a setting and where it was set. Addresses of stores are left out: a
    /// malformed one may have its password anywhere.
    private func given(_ key: ConfigurationKey) -> String {
        let origin = origins[key] ?? "the default"
        guard key != .metadata, key != .bytes else { return "\(origin) sets something else" }
        return "\(origin) sets \(ConfigurationFile.quoted(text(key)))"
    }

    /// The values in force as YAML that the loader can read back, without the password of the
    /// metadata store.
    package func printed() -> String {
        var lines: [String] = []
        var section = ""
        for key in ConfigurationKey.allCases {
            let parts = Self.components(of: key)
            if parts.count == 2, parts[0] != section { lines.append("\(parts[0]):") }
            section = parts.count == 2 ? parts[0] : ""
            let indent = parts.count == 2 ? "  " : ""
            lines.append("\(indent)# \(key.summary)")
            let value = ConfigurationFile.quoted(
                key == .metadata ? StoreAddress.withoutPassword(text(key)) : text(key))
            lines.append("\(indent)\(parts[parts.count - 1]): \(value)")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
