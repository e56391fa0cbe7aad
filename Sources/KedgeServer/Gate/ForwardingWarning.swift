internal import Logging
internal import NIOCore
internal import Synchronization

/// Warns once about a peer that sends `X-Forwarded-For` and is not named in `trustedProxies`. If it
/// is a proxy, all its clients count as one.
final class ForwardingWarning: Sendable {
    private let isGiven = Atomic(false)

    func warn(of peer: SocketAddress?, to logger: Logger) {
        guard !isGiven.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            """
            X-Forwarded-For ignored: peer is not in trustedProxies; if it is a proxy, all its \
            clients share the limits of one until it is listed there
            """, metadata: ["peer": "\(peer?.ipAddress ?? "unknown")"])
    }
}
