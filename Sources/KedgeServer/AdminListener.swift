internal import Hummingbird
internal import HummingbirdCore
internal import KedgeFiles
internal import Logging
internal import NIOCore

/// The Unix socket for operators in the data directory. The user of this process and root manage
/// the service there without a token.
package struct AdminListener: Sendable {
    /// Name of the socket in the data directory.
    package static let socketName = "admin.sock"
    /// Directory in which the socket is made.
    private static let privateName = "admin.sock.new"
    private static let maxConnectionCount = 16
    private static let idleTimeout = TimeAmount.seconds(60)

    let directory: String
    let routes: RouteTable
    /// Nil without an audit log.
    let audit: AuditTrail?
    let logger: Logger

    /// Serves until a graceful shutdown. Without a socket, the service goes on: a warning is
    /// logged, and operators can use tokens.
    ///
    /// - Parameter onReady: Called once connections are accepted.
    func run(onReady: @escaping @Sendable () -> Void) async {
        do {
            let place = try SocketDirectory(directory)
            let nursery = try place.makePrivate(Self.privateName)
            defer { place.remove(Self.socketName) }
            try await serve(in: nursery) {
                try place.adopt(
                    Self.socketName, from: nursery, named: Self.privateName,
                    as: Self.socketName)
                onReady()
            }
        } catch {
            logger.warning(
                "no socket for operators: kedge token and kedge admin need a token and --server",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func serve(
        in nursery: SocketDirectory, _ publish: @escaping @Sendable () throws -> Void
    ) async throws {
        // The socket has no address that a proxy could forward for, and no page can reach it.
        let router = routes.makeRouter(
            gate: RequestGate(allowedHosts: []), authenticator: .local, audit: audit)
        let application = Application(
            router: router,
            server: HTTPServerBuilder {
                LocalConnection(responder: $0, idleTimeout: Self.idleTimeout)
            },
            configuration: ApplicationConfiguration(
                address: .unixDomainSocket(path: nursery.path(of: Self.socketName)),
                serverName: "kedge",
                availableConnectionsDelegate: MaximumAvailableConnections(
                    Self.maxConnectionCount)),
            onServerRunning: { [logger] channel in
                do {
                    try publish()
                } catch {
                    logger.warning(
                        "the socket for operators cannot be made",
                        metadata: ["error": "\(String(reflecting: error))"])
                    // No client can reach it. Closing ends `run()`.
                    channel.close(promise: nil)
                }
            },
            logger: logger)
        try await application.run()
    }
}
