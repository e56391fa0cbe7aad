internal import HummingbirdCore
internal import KedgeEngine
internal import KedgeModel
internal import Logging
internal import NIOCore

/// Serves HTTP/1.1 over a Unix socket to trusted users; closes the connections of others before it
/// reads a byte.
struct LocalConnection: HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    private let http: HTTP1Channel

    var responder: Responder { http.responder }

    init(responder: @escaping Responder, idleTimeout: TimeAmount) {
        http = HTTP1Channel(
            responder: responder,
            configuration: HTTP1Channel.Configuration(
                idleTimeout: idleTimeout,
                httpDecoderConfiguration: HTTP1Channel.Configuration.DecoderConfiguration(
                    maxHeaderFieldSize: 16 << 10, maxHeaderListSize: 32 << 10,
                    maxHeaderFieldCount: 100)))
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        LocalPeer.userID(of: channel).flatMap { [http] userID -> EventLoopFuture<Value> in
            guard LocalPeer.isTrusted(userID) else {
                logger.warning(
                    "connection of another user to the socket for operators refused",
                    metadata: ["user.id": "\(userID)"])
                return channel.eventLoop.makeFailedFuture(EngineError(.unauthenticated))
            }
            return http.setup(channel: channel, logger: logger)
        }.flatMapError { error in
            // The server does not close a channel whose setup fails.
            channel.close().flatMapThrowing { (_: Void) throws -> Value in throw error }
        }
    }

    func handle(value: Value, logger: Logger) async {
        await http.handle(value: value, logger: logger)
    }
}
