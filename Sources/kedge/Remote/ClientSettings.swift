internal import Foundation
internal import KedgeClient
internal import KedgeModel
internal import KedgeServer
internal import Yams

/// The user's settings: `config.yaml`, written by hand, and `servers.yaml`, written by
/// `kedge login`, in `$XDG_CONFIG_HOME/kedge`. A server of `config.yaml` takes precedence.
struct ClientSettings {
    /// Name of the server that commands use without another one.
    var defaultServer: String?
    var servers: [String: NamedServer] = [:]
    /// Connections of one transfer.
    var connections: Int?
    var bandwidth = BandwidthRates()
    /// Age from which records of completed and canceled transfers are removed.
    var keepRecords: Duration?

    private static let names = ["server", "servers", "connections", "bwlimit", "keepRecords"]
    private static let serverNames = [
        "url", "token", "tokenFile", "tokenCommand", "caFile", "clientCertificate", "clientKey",
        "proxy",
    ]

    /// Directory of the settings.
    static func directory(environment: [String: String]) -> String {
        let home = environment["HOME"] ?? NSHomeDirectory()
        // The XDG specification requires relative values to be ignored.
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return "\(base ?? "\(home)/.config")/kedge"
    }

    /// - Throws: ``CommandFailure`` that names file and line.
    static func load(environment: [String: String]) throws -> ClientSettings {
        var settings = ClientSettings()
        let directory = directory(environment: environment)
        for file in ["servers.yaml", "config.yaml"] {
            try settings.read("\(directory)/\(file)")
        }
        return settings
    }

    /// Returns the server of a URL or of `@NAME`. A URL of the settings has the credentials there.
    ///
    /// - Parameter needsAccount: Whether the URL must belong to one account of the settings at
    ///   most. Otherwise the first by name counts.
    /// - Throws: ``CommandFailure`` for an unknown name, and for a URL of several accounts.
    func server(_ text: String, needsAccount: Bool) throws -> NamedServer {
        guard text.hasPrefix("@") else {
            let known = servers.sorted { $0.key < $1.key }.map { $0.value }
                .filter { Self.base($0.url) == Self.base(text) }
            guard !needsAccount || Set(known.map(\.account)).count < 2 else {
                let names = known.compactMap(\.name).map { "@\($0)" }.joined(separator: " and ")
                throw Self.failure(
                    "\(text) is the URL of \(names), which have different credentials. Use --server"
                        + " with one of these names.")
            }
            var server = known.first ?? NamedServer(url: text)
            server.url = text
            return server
        }
        let name = String(text.dropFirst())
        guard let server = servers[name] else {
            throw Self.failure(
                "There is no server named \(name) in the settings."
                    + NearestName.question(about: name, in: servers.keys.sorted())
                    + Self.fileHint(text))
        }
        return server
    }

    /// Returns advice for a word `@NAME` that may have been meant as a file; empty without one.
    static func fileHint(_ word: String) -> String {
        word.hasPrefix("@") && FileManager.default.fileExists(atPath: word)
            ? " The file of this name is ./\(word)." : ""
    }

    /// Returns the tokens of all servers but one by their URLs. Commands are not run for them. A
    /// URL of several accounts has no token: it is not known which of them began a transfer.
    func tokens(besides url: String?) -> [String: String] {
        var tokens: [String: String] = [:]
        let byBase = Dictionary(grouping: servers.values, by: { Self.base($0.url) })
        for (base, servers) in byBase where base != url.map(Self.base) {
            guard let server = servers.first, server.tokenCommand == nil,
                Set(servers.map(\.account)).count == 1
            else { continue }
            // Only for transfers that began there: an unreadable file shows when it is needed.
            tokens[base] = try? server.savedCredential()
        }
        return tokens
    }

    /// Returns the tokens that commands of the settings print, for the servers of these URLs but
    /// one. A URL of several accounts has no token.
    ///
    /// - Throws: ``CommandFailure`` if a command fails.
    func commandTokens(
        forServersOf urls: [String], besides url: String?
    ) async throws -> [String: String] {
        var tokens: [String: String] = [:]
        let byBase = Dictionary(grouping: servers.values, by: { Self.base($0.url) })
        for (base, servers) in byBase where base != url.map(Self.base) {
            guard urls.contains(where: { $0.hasPrefix(base + "/") }),
                let server = servers.first, server.tokenCommand != nil,
                Set(servers.map(\.account)).count == 1
            else { continue }
            tokens[base] = try await server.credential()
        }
        return tokens
    }

    /// Returns the settings of connections by the origins of the servers. At the origin of the
    /// chosen server, those of the others do not count.
    func originSettings(choosing chosen: NamedServer?) -> [String: OriginSettings] {
        var origins: [String: OriginSettings] = [:]
        // A URL that is no server of the settings gets the settings of its origin.
        let isNamed = chosen?.name != nil
        let home = chosen.flatMap { isNamed ? URLText.origin(of: $0.url) : nil }
        if let home { origins[home] = chosen?.originSettings }
        for (_, server) in servers.sorted(by: { $0.key < $1.key }) {
            guard let origin = URLText.origin(of: server.url), origin != home else { continue }
            let own = server.originSettings
            if origins[origin] == nil {
                origins[origin] = own
            } else if origins[origin]?.clientCertificate != own.clientCertificate {
                // It is not known which of them the request is for.
                origins[origin]?.clientCertificate = nil
            }
        }
        return origins
    }

    private static func base(_ url: String) -> String { URLText.normalizedBase(url) ?? url }

    private static func failure(_ message: String) -> CommandFailure {
        CommandFailure("kedge: \(message)", exitStatus: ExitStatus.usage)
    }

    // MARK: - Reading

    private mutating func read(_ path: String) throws {
        guard let file = try SettingsFile.read(path) else { return }
        let node: Node?
        do {
            node = try Yams.compose(yaml: file.text)
        } catch {
            let line = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
            throw Self.failure("\(path) cannot be read as YAML: \(line)")
        }
        guard let node else { return }
        var hasToken = false
        for (name, value, place) in try Self.members(of: node, in: path, known: Self.names) {
            switch name {
            case "server": defaultServer = try Self.text(value, place, name)
            case "servers": hasToken = try readServers(value, path)
            case "connections":
                guard let count = value.int, (1...32).contains(count) else {
                    throw Self.failure("\(place): connections must be 1 to 32.")
                }
                connections = count
            case "bwlimit":
                guard let rates = RateArgument(argument: try Self.text(value, place, name)) else {
                    throw Self.failure("\(place): bwlimit must be a rate such as 2M or 1M:5M.")
                }
                bandwidth = rates.rates
            default:
                guard let seconds = Quantity.seconds(try Self.text(value, place, name)),
                    seconds >= 0
                else { throw Self.failure("\(place): keepRecords must be a time such as 90d.") }
                keepRecords = .seconds(min(seconds, 1_000_000_000))
            }
        }
        guard !hasToken || !file.isPublic else {
            throw Self.failure(
                "\(path) has a token and can be read by others; run: chmod 600"
                    + " \(ShellText.quoted(path))")
        }
    }

    /// - Returns: Whether one of the servers in this file has a token.
    private mutating func readServers(_ node: Node, _ path: String) throws -> Bool {
        var hasToken = false
        for (name, value, _) in try Self.members(of: node, in: path, known: nil) {
            var server = NamedServer(name: name, url: "")
            let members = try Self.members(of: value, in: path, known: Self.serverNames)
            for (member, value, place) in members {
                let text = try Self.text(value, place, member)
                switch member {
                case "url": server.url = text
                case "token": server.token = text
                case "tokenFile": server.tokenFile = Self.expanded(text)
                case "tokenCommand": server.tokenCommand = text
                case "caFile": server.caFile = Self.expanded(text)
                case "clientCertificate": server.clientCertificate = Self.expanded(text)
                case "clientKey": server.clientKey = Self.expanded(text)
                default: server.proxy = text
                }
            }
            guard !server.url.isEmpty else {
                throw Self.failure("\(path): the server \(name) has no url.")
            }
            servers[name] = server
            hasToken = hasToken || server.token != nil
        }
        return hasToken
    }

    private static func expanded(_ path: String) -> String {
        path.hasPrefix("~/") ? NSHomeDirectory() + path.dropFirst() : path
    }

    /// Returns the members of a mapping, each with its file and line.
    ///
    /// - Parameter known: The allowed names; nil for any.
    private static func members(
        of node: Node, in path: String, known: [String]?
    ) throws -> [(name: String, value: Node, place: String)] {
        guard let mapping = node.mapping else {
            throw failure("\(path): names with values were expected.")
        }
        return try mapping.map { key, value in
            let place = path + (key.mark.map { ":\($0.line)" } ?? "")
            guard let name = key.string else { throw failure("\(place): A name is not text.") }
            if let known, !known.contains(name) {
                throw failure(
                    "\(place): \(name) is not a setting."
                        + NearestName.question(about: name, in: known))
            }
            return (name, value, place)
        }
    }

    private static func text(_ node: Node, _ place: String, _ name: String) throws -> String {
        guard let scalar = node.scalar, !scalar.string.isEmpty else {
            throw failure("\(place): \(name) must be text.")
        }
        return scalar.string
    }
}

/// Names of the settings' servers for completion.
enum ServerCompletion {
    /// Returns nothing if the settings cannot be read.
    static func names() async -> [String] {
        let settings = try? ClientSettings.load(environment: ProcessInfo.processInfo.environment)
        return settings?.servers.keys.sorted().map { "@\($0)" } ?? []
    }
}
