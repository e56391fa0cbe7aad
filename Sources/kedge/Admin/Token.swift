internal import ArgumentParser
internal import Foundation
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeModel
internal import KedgeServer

/// `kedge token`
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make, list and revoke the API tokens of a service.",
        discussion: """
            A service with identity.mode tokens needs them. The commands open the database of the \
            service. With PostgreSQL, the service may be running. With SQLite, stop it first; \
            exit status 10 says that it runs.

            Settings are those of kedge serve: flags override KEDGE_* variables, which override \
            the file.
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a token and print it, once.",
            discussion: """
                Only the token goes to standard output. The service keeps no copy of it, so it \
                cannot be printed again.

                Bundles of scopes: uploader (uploads:*), reader (files:read, files:list), user \
                (everything for one owner), backend (user and act-as), admin (every scope).
                """)
        @Argument(help: "Name of the token, for people.") var name: String
        @Option(help: "Owner of the sessions and files that the token gives access to.")
        var owner: String
        @Option(help: "Scopes and bundles, separated by commas, such as uploads:write,files:read.")
        var scopes: String
        @Option(
            help: ArgumentHelp(
                "Time after which it expires, such as 90d (default: never).", valueName: "time"))
        var expires: String?
        @Flag(help: "Write one JSON object with the token.") var json = false
        @OptionGroup var options: TokenOptions

        /// The values as checked types.
        private struct Values {
            var owner: OwnerID
            var scopes: Set<Scope>
            var lifetime: Duration?
        }

        func validate() throws { _ = try values() }

        func run() async throws {
            let values = try values()
            let token = APIToken.generate()
            let record = try await options.opening(mayCreate: true).use { store, clock in
                let now = clock.now()
                let record = TokenRecord(
                    id: token.id, secretDigest: token.secretDigest, owner: values.owner,
                    scopes: values.scopes, name: name, createdBy: "local:\(getuid())",
                    createdAt: now, expiresAt: values.lifetime.map { now.advanced(by: $0) })
                try await store.insert(record)
                return record
            }
            guard !json else {
                var line = TokenLine(record)
                line.token = token.text
                return StandardOutput.write(JSONLine.encode(VersionedLine(value: line)))
            }
            StandardError.write(
                "Token \(record.id) for the owner \(printable(record.owner.text)). "
                    + "It is not shown again.\n")
            StandardOutput.write(token.text + "\n")
        }

        private func values() throws -> Values {
            let isName =
                (1...255).contains(name.utf8.count)
                && name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            guard isName else {
                throw ValidationError(
                    "The name must have 1 to 255 bytes without control characters.")
            }
            let scopes = try parsedScopes()
            guard !scopes.isEmpty else { throw ValidationError("--scopes must name a scope.") }
            var lifetime: Duration?
            if let expires {
                // A hundred years. Larger values would only overflow in arithmetic.
                guard let seconds = Quantity.seconds(expires), (1...3_153_600_000).contains(seconds)
                else { throw ValidationError("--expires must be a time such as 12h or 90d.") }
                lifetime = .seconds(seconds)
            }
            return Values(
                owner: try TokenOptions.owner(owner), scopes: scopes, lifetime: lifetime)
        }

        private func parsedScopes() throws -> Set<Scope> {
            do {
                return try Scope.parse(scopes)
            } catch {
                throw ValidationError("--scopes: \(error)")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the tokens, newest first.", aliases: ["ls"])
        @Option(help: "List only tokens of this owner.") var owner: String?
        @Option(help: ArgumentHelp("List at most this many tokens.", valueName: "count"))
        var limit = 1000
        @Flag(help: "Write one JSON object per line.") var json = false
        @OptionGroup var options: TokenOptions

        func validate() throws {
            guard limit > 0 else { throw ValidationError("--limit must be above 0.") }
            if let owner { _ = try TokenOptions.owner(owner) }
        }

        func run() async throws {
            let owner = try owner.map { try TokenOptions.owner($0) }
            let (tokens, now) = try await options.opening(mayCreate: false).use { store, clock in
                (try await store.tokens(of: owner, limit: limit), clock.now())
            }
            guard !json else {
                for token in tokens {
                    StandardOutput.write(JSONLine.encode(VersionedLine(value: TokenLine(token))))
                }
                return
            }
            var table = TextTable([
                ("ID", .left), ("OWNER", .left), ("NAME", .left), ("STATE", .left),
                ("LAST USE", .left), ("SCOPES", .left),
            ])
            for token in tokens {
                table.add([
                    token.id.text, token.owner.text, token.name, Self.state(of: token, at: now),
                    token.lastUsedAt?.description ?? "never", Scope.text(of: token.scopes),
                ])
            }
            StandardOutput.write(table.text)
        }

        private static func state(of token: TokenRecord, at now: Timestamp) -> String {
            if token.revokedAt != nil { return "revoked" }
            guard let expiresAt = token.expiresAt else { return "valid" }
            return expiresAt <= now ? "expired" : "until \(expiresAt)"
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a token.",
            discussion: "A running service refuses the token after ten seconds at the latest.")
        @Argument(help: "Id of the token: the 12 characters after kdg_.") var id: String
        @OptionGroup var options: TokenOptions

        func validate() throws { _ = try tokenID() }

        func run() async throws {
            let id = try tokenID()
            let isKnown = try await options.opening(mayCreate: false).use { store, clock in
                try await store.revokeToken(id, at: clock.now())
            }
            guard isKnown else {
                throw CommandFailure(
                    "kedge: there is no token \(id)", exitStatus: ExitStatus.notFound)
            }
            StandardError.write("Token \(id) is revoked.\n")
        }

        private func tokenID() throws -> TokenID {
            guard let id = TokenID(id) else {
                throw ValidationError(
                    "The id of a token has \(TokenID.width) letters and digits; it is no secret.")
            }
            return id
        }
    }
}

/// Options of all commands for tokens and keys.
struct TokenOptions: ParsableArguments {
    @Option(help: "Data directory of the service, if it holds the rows.", completion: .directory)
    var data: String?
    @Option(help: "YAML file with the settings of the service.", completion: .file())
    var config: String?
    @Option(help: "\(ConfigurationKey.metadata.summary)") var metadata: String?

    /// Parses the name of an owner.
    static func owner(_ text: String) throws -> OwnerID {
        guard let owner = OwnerID(checking: text) else {
            throw ValidationError(
                "--owner must be 1 to \(OwnerID.maxByteCount) printable ASCII characters.")
        }
        return owner
    }

    /// Loads the settings of the service.
    ///
    /// - Throws: ``CommandFailure`` for invalid settings, or if the location of the data directory
    ///   is not named: a token in a directory that happens to be here would be useless.
    func opening(
        mayCreate: Bool, masterKeyFile: String? = nil
    ) async throws -> TokenStoreOpening {
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
        // A relative one in a file depends on the directory in which the service starts.
        let isNamed =
            data != nil || environment[ConfigurationKey.data.environmentName] != nil
            || configuration.dataDirectory.hasPrefix("/")
        guard isNamed || configuration.metadata != .sqlite else {
            throw CommandFailure(
                "kedge: no data directory; set --data to that of the service",
                exitStatus: ExitStatus.usage)
        }
        return TokenStoreOpening(configuration, mayCreate: mayCreate)
    }
}

/// A token as an object of `--json`.
private struct TokenLine: Encodable {
    var tokenId: String
    var name: String
    var owner: String
    var scopes: [String]
    var createdBy: String
    var createdAt: Timestamp
    var expiresAt: Timestamp?
    var lastUsedAt: Timestamp?
    var revokedAt: Timestamp?
    /// Only when it was made.
    var token: String?

    init(_ record: TokenRecord) {
        tokenId = record.id.text
        name = record.name
        owner = record.owner.text
        scopes = record.scopes.sorted().map(\.rawValue)
        createdBy = record.createdBy
        createdAt = record.createdAt
        expiresAt = record.expiresAt
        lastUsedAt = record.lastUsedAt
        revokedAt = record.revokedAt
    }
}
