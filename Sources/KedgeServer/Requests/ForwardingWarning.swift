internal import Logging
internal import NIOCore
internal import Synchronization

/// Says once that a peer looks like a proxy that is not named in `trustedProxies`: all its clients share what one
/// client may take then.
final class ForwardingWarning: Sendable {
    private let isGiven = Atomic(false)

    func warn(of peer: SocketAddress?, to logger: Logger) {
        guard !isGiven.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            """
            X-Forwarded-For is ignored: the peer is not named in trustedProxies. If it is a proxy, name it; without \
            that, all its clients share what one may take
            """, metadata: ["peer": "\(peer?.ipAddress ?? "unknown")"])
    }
}
