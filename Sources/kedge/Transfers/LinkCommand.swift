internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge link`
struct LinkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link",
        abstract: "Make and revoke links, which need no token.",
        discussion: """
            A link permits one upload, or the download of one file, to everyone who has it. The \
            server does not store links: each is printed once. Making one needs a token with the \
            scope links:create and the scope that the link gives away.
            """,
        subcommands: [Upload.self, Download.self, Session.self, Revoke.self])

    struct Upload: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a link that permits an upload.",
            discussion: """
                It works with `kedge upload FILE --server LINK`, with \
                `curl --request POST --upload-file FILE 'LINK'`, and with IETF uploads. curl \
                needs --name, or sends the name in Content-Disposition. --tus prints the address \
                for tus clients.
                """)
        @Option(help: "Maximum size of the file: bytes, or 8M.") var maxSize: ByteCountArgument?
        @Option(
            help: ArgumentHelp(
                "Media type that the file may have, such as image/png or video/*; may be repeated.",
                valueName: "type"))
        var type: [String] = []
        @Option(help: "Name that the file gets.") var name: String?
        @Option(
            help: ArgumentHelp(
                "Text to store with the file, which its client cannot change; may be repeated.",
                valueName: "key=value"))
        var metadata: [MetadataArgument] = []
        @Option(help: "Number of uploads that the link permits.") var uses = 1
        @Flag(help: "Print the address for tus clients.") var tus = false
        @OptionGroup var limits: LinkLimits
        @OptionGroup var options: ClientOptions

        func validate() throws {
            guard maxSize?.byteCount ?? 0 >= 0 else {
                throw ValidationError("--max-size must be 0 or more.")
            }
            guard uses > 0 else { throw ValidationError("--uses must be above 0.") }
        }

        func run() async throws {
            var request = limits.request(.put)
            request.maxFileSize = maxSize?.byteCount
            request.mimeTypes = type.isEmpty ? nil : type
            request.fileName = name
            if !metadata.isEmpty {
                request.metadata = Dictionary(
                    metadata.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
            }
            request.uses = uses == 1 ? nil : uses
            let message = request
            try await options.withClient { client in
                let link = try await client.remote.createLink(message)
                options.print(link, url: tus ? link.tusUrl ?? link.url : link.url)
            }
        }
    }

    struct Download: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a link that permits the download of a file.")
        @Argument(help: RemoteID.help) var file: String
        @Flag(help: "Let a browser show the file instead of saving it.") var inline = false
        @Option(help: "Name under which a browser saves the file.") var name: String?
        @OptionGroup var limits: LinkLimits
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                var request = limits.request(.get)
                request.fileId = try await RemoteID.file(file, client)
                request.disposition = inline ? .inline : nil
                request.fileName = name
                let link = try await client.remote.createLink(request)
                options.print(link, url: link.url)
            }
        }
    }

    struct Session: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a link that permits to continue an upload session.")
        @Argument(
            help: "Id of the session: whole, a unique beginning, or `last` for the newest.")
        var session: String
        @OptionGroup var limits: LinkLimits
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                var request = limits.request(.session)
                request.sessionId = try await RemoteID.session(session, client)
                let link = try await client.remote.createLink(request)
                options.print(link, url: link.url)
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke links by their ids.",
            discussion: """
                The id is printed with the link. Requests that have begun continue, and so does an \
                upload session that the link began.
                """)
        @Argument(help: "Ids of the links.") var ids: [String]
        @OptionGroup var options: ClientOptions

        func run() async throws {
            try await options.withClient { client in
                for id in ids { try await client.remote.revokeLink(id) }
            }
        }
    }
}

/// Limits of every link.
struct LinkLimits: ParsableArguments {
    /// A hundred years. Larger values would only overflow in arithmetic.
    private static let maxSeconds: Int64 = 3_153_600_000

    @Option(help: ArgumentHelp("Time for which the link is valid: 12h, 30d.", valueName: "time"))
    var expires = "1d"
    @Option(
        help: ArgumentHelp(
            "Origin of web pages that may use the link; may be repeated.", valueName: "url"))
    var origin: [String] = []

    func validate() throws {
        guard seconds != nil else {
            throw ValidationError("--expires must be a time such as 12h or 90d.")
        }
    }

    private var seconds: Int64? {
        Quantity.seconds(expires).flatMap { (1...Self.maxSeconds).contains($0) ? $0 : nil }
    }

    func request(_ operation: LinkOperation) -> CreateLinkRequest {
        guard let seconds else { preconditionFailure("the parser has validated the time") }
        var request = CreateLinkRequest(op: operation, expiresInSeconds: seconds)
        request.origins = origin.isEmpty ? nil : origin
        return request
    }
}

extension ClientOptions {
    /// Prints a link. Only its address is data.
    fileprivate func print(_ link: CreateLinkResponse, url: String) {
        guard !json else {
            return StandardOutput.write(JSONLine.encode(VersionedLine(value: link)))
        }
        StandardOutput.write(url + "\n")
        guard !quiet else { return }
        StandardError.write(
            "Link \(printable(link.linkId)), valid until \(link.expiresAt). It is not shown"
                + " again.\n")
    }
}
