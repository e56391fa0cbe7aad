internal import Glibc
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import NIOCore

/// The user at the other end of a connection over a Unix socket.
enum LocalPeer {
    /// `struct ucred` (unix(7)), which Glibc's module does not have.
    private struct Credentials: Sendable {
        var processID: Int32 = 0
        var userID: UInt32 = 0
        var groupID: UInt32 = 0
    }

    /// Returns the user id that the peer had when it connected, as the kernel knows it.
    static func userID(of channel: any Channel) -> EventLoopFuture<UInt32> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(EngineError(.unauthenticated))
        }
        let credentials: EventLoopFuture<Credentials> = provider.unsafeGetSocketOption(
            level: NIOBSDSocket.OptionLevel(rawValue: SOL_SOCKET),
            name: NIOBSDSocket.Option(rawValue: SO_PEERCRED))
        return credentials.map { $0.userID }
    }

    /// Whether the user may manage the service: root, or the user of this process.
    static func isTrusted(_ userID: UInt32) -> Bool { userID == 0 || userID == geteuid() }

    /// Returns the principal of a connection.
    ///
    /// - Throws: `UNAUTHENTICATED` for another user.
    static func principal(of channel: any Channel) async throws -> Principal {
        let userID = try await userID(of: channel).get()
        guard isTrusted(userID) else { throw EngineError(.unauthenticated) }
        return Principal(
            owner: .anonymous, kind: .local, name: "local:\(userID)", scopes: Set(Scope.allCases))
    }
}
