internal import ArgumentParser
internal import Foundation
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeModel

/// `kedge token`
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make, list and revoke the API tokens of a service.",
        discussion:
            "A service with identity.mode tokens needs them. \(ServiceOptions.discussion)",
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
        @OptionGroup var options: ServiceOptions

        func validate() throws { _ = try values() }

        func run() async throws {
            let values = try values()
            let made = try await options.manage(mayCreate: true) { service in
                try await service.createToken(values)
            }
            guard !options.client.json else {
                return StandardOutput.write(JSONLine.encode(VersionedLine(value: made)))
            }
            StandardError.write(
                "Token \(printable(made.tokenId)) for the owner \(printable(made.owner)). "
                    + "It is not shown again.\n")
            StandardOutput.write(printable(made.token ?? "") + "\n")
        }

        private func values() throws -> NewToken {
            var seconds: Int64?
            if let expires {
                seconds = Quantity.seconds(expires)
                guard seconds != nil else {
                    throw ValidationError("--expires must be a time such as 12h or 90d.")
                }
            }
            do {
                return try NewToken(
                    name: name, owner: owner, scopes: scopes, expiresInSeconds: seconds)
            } catch {
                throw ValidationError(error.description)
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the tokens, newest first.", aliases: ["ls"])
        @Option(help: "List only tokens of this owner.") var owner: String?
        @Option(help: ArgumentHelp("List at most this many tokens.", valueName: "count"))
        var limit = 1000
        @OptionGroup var options: ServiceOptions

        func validate() throws {
            guard (1...10_000).contains(limit) else {
                throw ValidationError("--limit must be from 1 to 10000.")
            }
            _ = try owner.map { try OwnerArgument.parse($0) }
        }

        func run() async throws {
            let owner = try owner.map { try OwnerArgument.parse($0) }
            let list = try await options.manage { service in
                try await service.tokens(of: owner, limit: limit)
            }
            if options.client.json {
                for token in list.tokens {
                    StandardOutput.write(JSONLine.encode(VersionedLine(value: token)))
                }
            } else {
                StandardOutput.write(Self.table(list.tokens, at: SystemWallClock().now()))
            }
            if list.hasMore { StandardError.write("There are older tokens; see --limit.\n") }
        }

        private static func table(_ tokens: [TokenDescription], at now: Timestamp) -> String {
            var table = TextTable([
                ("ID", .left), ("OWNER", .left), ("NAME", .left), ("STATE", .left),
                ("LAST USE", .left), ("SCOPES", .left),
            ])
            for token in tokens {
                table.add([
                    token.tokenId, token.owner, token.name, state(of: token, at: now),
                    token.lastUsedAt?.description ?? "never",
                    token.scopes.joined(separator: ","),
                ])
            }
            return table.text
        }

        private static func state(of token: TokenDescription, at now: Timestamp) -> String {
            if token.revokedAt != nil { return "revoked" }
            guard let expiresAt = token.expiresAt else { return "valid" }
            return expiresAt <= now ? "expired" : "until \(expiresAt)"
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a token.",
            discussion: """
                A running service refuses the token at once. Nodes that are not notified, as with \
                listen=off in the URL of the database, refuse it within ten seconds.
                """)
        @Argument(help: "Id of the token: the 12 characters after kdg_.") var id: String
        @OptionGroup var options: ServiceOptions

        func validate() throws { _ = try tokenID() }

        func run() async throws {
            let id = try tokenID()
            let isKnown = try await options.manage { service in
                try await service.revokeToken(id)
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
