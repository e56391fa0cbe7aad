internal import ArgumentParser
internal import KedgeClient
internal import KedgeFiles
internal import KedgeServer

/// Options of the commands that manage a service: where it is.
struct ServiceOptions: ParsableArguments {
    @OptionGroup var stores: TokenOptions
    @OptionGroup var client: ClientOptions

    /// Text for the help of the commands.
    static let discussion = """
        With --server, the command asks that service and needs a token with the scope admin. \
        Without it, it asks the running service at the socket admin.sock in the data directory: \
        run it as the user of the service or root. If no service runs, or with PostgreSQL, it \
        opens the database.

        Settings are those of kedge serve: flags override KEDGE_* variables, which override the \
        file.
        """

    func validate() throws {
        guard client.server == nil || !stores.areGiven else {
            throw ValidationError("Use either --server, or --data, --config and --metadata.")
        }
    }

    /// Lends the tokens and owners of the service.
    ///
    /// - Parameter mayCreate: Whether a data directory and a database are made if there are none.
    /// - Throws: ``CommandFailure`` if the service and its stores cannot be used.
    func manage<Result>(
        mayCreate: Bool = false, _ body: (any ServiceManagement) async throws -> Result
    ) async throws -> Result {
        guard client.server == nil else { return try await manageServer(body) }
        let configuration = try await stores.configuration()
        if let directory = socketDirectory(configuration) {
            return try await manage(over: directory, body)
        }
        return try await TokenStoreOpening(configuration, mayCreate: mayCreate).use {
            try await body(StoreManagement(store: $0, clock: $1))
        }
    }

    private func manageServer<Result>(
        _ body: (any ServiceManagement) async throws -> Result
    ) async throws -> Result {
        var result: Result?
        try await client.withClient { client in
            result = try await body(RemoteManagement(api: client.admin))
        }
        guard let result else { preconditionFailure("the closure has returned a value") }
        return result
    }

    private func manage<Result>(
        over directory: SocketDirectory, _ body: (any ServiceManagement) async throws -> Result
    ) async throws -> Result {
        // The path may contain the directory's descriptor.
        defer { withExtendedLifetime(directory) {} }
        let api = AdminAPI(unixSocketPath: directory.path(of: AdminListener.socketName))
        do {
            let result = try await reporting { try await body(RemoteManagement(api: api)) }
            await api.close()
            return result
        } catch {
            await api.close()
            throw error
        }
    }

    /// The data directory, if a service listens in it.
    private func socketDirectory(_ configuration: ServiceConfiguration) -> SocketDirectory? {
        guard configuration.usesDataDirectory, stores.isDirectoryNamed(configuration),
            // An absent directory has no service, and opening the stores reports other failures.
            let directory = try? SocketDirectory(configuration.dataDirectory),
            directory.isListening(AdminListener.socketName)
        else { return nil }
        return directory
    }
}
