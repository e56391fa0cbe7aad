internal import KedgeLocks
internal import Logging
internal import NIOCore

/// Whether the server accepts connections. Can be read from any thread.
package final class AcceptState: Sendable {
    private let trouble = Mutex(AcceptTrouble())

    /// The reason why connections are not accepted; nil when they are.
    var reason: AcceptTrouble.Reason? { trouble.withLock { $0.reason(at: .now()) } }

    fileprivate func failed(_ reason: AcceptTrouble.Reason) -> Int? {
        trouble.withLock { $0.failed(reason, at: .now()) }
    }
}

/// Pauses accepting when the system lacks file descriptors or memory for a connection.
///
/// First in the listening channel's pipeline. After a failed accept(2), NIO leaves the socket
/// registered for reading, and its event loop wakes for the same connection again and again. NIO's
/// `AcceptBackoffHandler` only delays reads that are requested later, and none is. Switching
/// `autoRead` off unregisters the socket; the connections wait in the kernel.
final class AcceptPause: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    private let state: AcceptState
    private let logger: Logger
    private var isPaused = false

    init(_ state: AcceptState, logger: Logger) {
        self.state = state
        self.logger = logger
    }

    /// Ignores reads during a pause. The owed read follows when the pause is over.
    func read(context: ChannelHandlerContext) {
        if !isPaused { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let code = (error as? IOError)?.errnoCode,
            let reason = AcceptTrouble.Reason(errnoCode: code)
        else {
            context.fireErrorCaught(error)
            return
        }
        if let count = state.failed(reason) {
            logger.error(
                "accepting connections failed",
                metadata: [
                    "reason": "\(reason.rawValue)", "failures": "\(count)", "error": "\(error)",
                ])
        }
        pause(context)
    }

    private func pause(_ context: ChannelHandlerContext) {
        guard !isPaused, let options = context.channel.syncOptions else { return }
        isPaused = true
        // Fails only for a closed channel, which has nothing to resume.
        try? options.setOption(.autoRead, value: false)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: AcceptTrouble.pause) {
            let (handler, context) = bound.value
            handler.isPaused = false
            try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }
}
