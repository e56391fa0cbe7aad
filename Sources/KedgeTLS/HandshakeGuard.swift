internal import Logging
internal import NIOCore
internal import NIOSSL
internal import NIOTLS

/// Limits the time of a handshake, keeps the errors of TLS from the handlers above, and closes
/// connections that the client has closed, too. Comes next to the handler of TLS.
///
/// HTTP finds the end of each message by itself, so a client that ends without `close_notify`, as
/// many do, needs no error. After other errors, the handler of TLS closes the connection.
final class HandshakeGuard: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let timeout: TimeAmount
    private let logger: Logger
    private let onEnd: @Sendable (HandshakeOutcome) -> Void
    private var limit: Scheduled<Void>?
    private var isHandshakeOver = false
    private var isInputClosed = false
    private var isClosing = false

    init(
        timeout: TimeAmount, logger: Logger, onEnd: @escaping @Sendable (HandshakeOutcome) -> Void
    ) {
        self.timeout = timeout
        self.logger = logger
        self.onEnd = onEnd
    }

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { begin(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { limit?.cancel() }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        endHandshake(.aborted)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? TLSUserEvent, case .handshakeCompleted = event {
            endHandshake(.completed)
        }
        context.fireUserInboundEventTriggered(event)
        guard event as? ChannelEvent == .inputClosed else { return }
        isInputClosed = true
        if isClosing { closeTransport(context) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard Self.isOfTLS(error) else {
            context.fireErrorCaught(error)
            return
        }
        let isEarlyEnd =
            error as? NIOSSLError
            == NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake]))
        endHandshake(isEarlyEnd ? .aborted : .failed)
        logger.debug(
            "TLS failed",
            metadata: [
                "peer": "\(context.remoteAddress?.ipAddress ?? "unknown")", "error": "\(error)",
            ])
    }

    /// Closes the connection below, too, once the client has closed its side. With half-closed
    /// connections allowed, the handler of TLS would wait for its timeout.
    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        if mode == .all { isClosing = true }
        context.close(mode: mode, promise: promise)
        if isClosing, isInputClosed { closeTransport(context) }
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard limit == nil else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        limit = context.eventLoop.scheduleTask(in: timeout) {
            let (handler, context) = bound.value
            handler.endHandshake(.timeout)
            handler.closeTransport(context)
        }
    }

    private func endHandshake(_ outcome: HandshakeOutcome) {
        guard !isHandshakeOver else { return }
        isHandshakeOver = true
        limit?.cancel()
        onEnd(outcome)
    }

    private func closeTransport(_ context: ChannelHandlerContext) {
        // The handler of TLS has left a closed connection, and there is nothing to close.
        let transport = try? context.pipeline.syncOperations.context(
            handlerType: NIOSSLServerHandler.self)
        transport?.close(promise: nil)
    }

    private static func isOfTLS(_ error: any Error) -> Bool {
        error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError
    }
}
