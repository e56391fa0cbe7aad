internal import ArgumentParser
internal import KedgeModel

/// `kedge admin owners`
struct Owners: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the owners of sessions and files, set their limits, and block them.",
        discussion: ServiceOptions.discussion,
        subcommands: [List.self, Show.self, SetQuota.self, Block.self, Unblock.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the owners by name.", aliases: ["ls"])
        @OptionGroup var options: ServiceOptions

        func run() async throws {
            var owners: [OwnerDescription] = []
            try await options.manage { service in
                try await ServerPages.forEach { cursor in
                    let page = try await service.owners(after: cursor, limit: 1000)
                    return (page.owners, page.next)
                } _: { page in
                    owners += page
                    return true
                }
            }
            OwnerText.write(owners, options)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the limits and the use of one owner.")
        @Argument(help: "Name of the owner.") var owner: String
        @OptionGroup var options: ServiceOptions

        func validate() throws { _ = try OwnerArgument.parse(owner) }

        func run() async throws {
            let owner = try OwnerArgument.parse(owner)
            let found = try await options.manage { service in try await service.owner(owner) }
            guard let found else {
                throw CommandFailure(
                    "kedge: there is no owner \(printable(owner.text))",
                    exitStatus: ExitStatus.notFound)
            }
            OwnerText.write([found], options)
        }
    }

    struct SetQuota: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set limits of an owner.",
            discussion: """
                Other limits stay as they are. `none` is no limit, and `default` the one of the \
                settings of the service. An owner that already uses more keeps what it has, and \
                cannot add to it.
                """)
        @Argument(help: "Name of the owner.") var owner: String
        @Option(
            help: ArgumentHelp(
                "Maximum of stored and reserved bytes together, such as 500G.",
                valueName: "bytes"))
        var storedBytes: String?
        @Option(help: ArgumentHelp("Maximum number of unfinished uploads.", valueName: "count"))
        var openSessions: String?
        @Option(help: ArgumentHelp("Maximum size of one file, such as 20G.", valueName: "bytes"))
        var fileBytes: String?
        @OptionGroup var options: ServiceOptions

        func validate() throws {
            _ = try OwnerArgument.parse(owner)
            guard storedBytes != nil || openSessions != nil || fileBytes != nil else {
                throw ValidationError("Name a limit to set.")
            }
            var limits = OwnerLimitValues()
            try apply(to: &limits)
        }

        func run() async throws {
            let owner = try OwnerArgument.parse(owner)
            let changed = try await options.manage { service in
                var limits = try await service.owner(owner)?.limits ?? OwnerLimitValues()
                try apply(to: &limits)
                return try await service.changeOwner(owner, OwnerChange(limits: limits))
            }
            OwnerText.write([changed], options)
        }

        private func apply(to limits: inout OwnerLimitValues) throws {
            if let storedBytes {
                limits.maxStoredBytes = try Self.limit("--stored-bytes", storedBytes) {
                    Quantity.byteCount($0)
                }
            }
            if let openSessions {
                limits.maxOpenSessions = try Self.limit("--open-sessions", openSessions) {
                    Int64($0)
                }
            }
            if let fileBytes {
                limits.maxFileBytes = try Self.limit("--file-bytes", fileBytes) {
                    Quantity.byteCount($0)
                }
            }
        }

        private static func limit(
            _ name: String, _ text: String, _ parse: (String) -> Int64?
        ) throws -> Int64? {
            guard let limit = LimitArgument(text, parse: parse) else {
                throw ValidationError("\(name) must be a number above 0, none or default.")
            }
            return limit.value
        }
    }

    struct Block: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Refuse every token and link of an owner.",
            discussion: "Its files and unfinished uploads stay.")
        @Argument(help: "Name of the owner.") var owner: String
        @OptionGroup var options: ServiceOptions

        func validate() throws { _ = try OwnerArgument.parse(owner) }

        func run() async throws { try await OwnerText.block(true, owner, options) }
    }

    struct Unblock: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End the block of an owner.")
        @Argument(help: "Name of the owner.") var owner: String
        @OptionGroup var options: ServiceOptions

        func validate() throws { _ = try OwnerArgument.parse(owner) }

        func run() async throws { try await OwnerText.block(false, owner, options) }
    }
}

/// Owners as output.
private enum OwnerText {
    static func write(_ owners: [OwnerDescription], _ options: ServiceOptions) {
        guard !options.client.json else {
            for owner in owners {
                StandardOutput.write(JSONLine.encode(VersionedLine(value: owner)))
            }
            return
        }
        var table = TextTable([
            ("OWNER", .left), ("STORED", .right), ("RESERVED", .right), ("SESSIONS", .right),
            ("MAX STORED", .right), ("MAX SESSIONS", .right), ("MAX FILE", .right),
            ("STATE", .left),
        ])
        for owner in owners {
            table.add([
                owner.owner, ByteText.size(owner.storedBytes), ByteText.size(owner.reservedBytes),
                "\(owner.openSessions)",
                LimitArgument.text(owner.limits.maxStoredBytes) { ByteText.size($0) },
                LimitArgument.text(owner.limits.maxOpenSessions) { "\($0)" },
                LimitArgument.text(owner.limits.maxFileBytes) { ByteText.size($0) },
                owner.isBlocked ? "blocked" : "active",
            ])
        }
        StandardOutput.write(table.text)
    }

    static func block(_ isBlocked: Bool, _ name: String, _ options: ServiceOptions) async throws {
        let owner = try OwnerArgument.parse(name)
        let changed = try await options.manage { service in
            try await service.changeOwner(owner, OwnerChange(isBlocked: isBlocked))
        }
        guard !options.client.json else { return write([changed], options) }
        StandardError.write(
            "\(printable(owner.text)) is \(isBlocked ? "blocked" : "not blocked").\n")
    }
}
