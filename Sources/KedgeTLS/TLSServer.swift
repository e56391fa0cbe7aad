package import Logging
package import NIOCore
internal import NIOSSL

/// Ends TLS on connections that clients have opened.
package struct TLSServer: Sendable {
    /// An idle connection keeps so many bytes of its buffer for encrypted bytes.
    private static let keptBufferByteCount = 64 << 10

    private let certificates: CertificateReloader
    private let handshakeTimeout: TimeAmount
    private let logger: Logger
    private let onHandshake: @Sendable (HandshakeOutcome) -> Void

    /// - Parameters:
    ///   - handshakeTimeout: Time after which a connection without a complete handshake is closed.
    ///   - onHandshake: Called on an event loop, once for each connection.
    package init(
        _ certificates: CertificateReloader, handshakeTimeout: Duration, logger: Logger,
        onHandshake: @escaping @Sendable (HandshakeOutcome) -> Void
    ) {
        self.certificates = certificates
        self.handshakeTimeout = TimeAmount(handshakeTimeout)
        self.logger = logger
        self.onHandshake = onHandshake
    }

    /// Adds the handlers of TLS to a new connection, of which they must be the first. The caller is
    /// on its event loop.
    ///
    /// - Throws: An error of NIO if the connection has closed.
    package func addHandlers(to channel: any Channel) throws {
        var configuration = NIOSSLHandler.Configuration()
        configuration.maximumPreservedOutboundBufferCapacity = Self.keptBufferByteCount
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(
            NIOSSLServerHandler(
                context: certificates.current.context, configuration: configuration))
        try pipeline.addHandler(
            HandshakeGuard(timeout: handshakeTimeout, logger: logger, onEnd: onHandshake))
    }
}
