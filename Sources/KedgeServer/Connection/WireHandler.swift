internal import KedgeModel
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// Answers malformed requests with a problem document, and closes connections in order. Comes next
/// to the parser.
///
/// In order means: all responses are sent first, then the output closes. The connection closes when
/// the client has closed its side too, or after `lingerTime`. Closing while the client still sends
/// would reset the connection, and the client would miss the response.
final class WireHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private static let lingerTime = TimeAmount.seconds(2)

    private let logger: Logger
    private var state = WireState()
    /// The parser's error, until it has been answered.
    private var failure: HTTPParserError?
    /// Completes when all responses have been handed to the kernel.
    private var sent: EventLoopFuture<Void>?
    private var isOutputClosed = false
    private var context: ChannelHandlerContext?

    init(logger: Logger) { self.logger = logger }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Sends bytes of a file as part of the current response body.
    func send(_ region: FileRegion, promise: EventLoopPromise<Void>) {
        guard let context, !state.isEnding else {
            promise.fail(ChannelError.outputClosed)
            return
        }
        context.writeAndFlush(wrapOutboundOut(.body(.fileRegion(region))), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard state.takesInput else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            state.requestBegan(isLast: head.isLastOnConnection)
            head.normalize()
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            context.fireChannelRead(data)
        case .end:
            state.requestEnded()
            context.fireChannelRead(data)
        }
    }

    /// Reads on while the connection ends. No other handler asks for bytes then, and unread bytes
    /// would turn the close into a reset.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if state.isEnding { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Bytes after the first parser error, which has been handled.
        if case ByteToMessageDecoderError.dataReceivedInErrorState = error { return }
        guard let parserError = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        switch state.parsingFailed() {
        case .nothing: failure = failure ?? parserError
        case .notifyReader: context.fireErrorCaught(error)
        case .refuse: refuse(parserError, context)
        case .end: end(context)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !state.isEnding else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head) where state.isLastAnswer && head.status.code >= 200:
            head.headers.replaceOrAdd(name: "connection", value: "close")
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .head, .body:
            context.write(data, promise: promise)
        case .end:
            let promise = promise ?? context.eventLoop.makePromise()
            sent = promise.futureResult
            context.write(data, promise: promise)
            switch state.answered() {
            case .nothing: break
            case .refuse: refuse(failure ?? .unknown, context)
            case .end: end(context)
            }
        }
    }

    /// Closes the output after all responses have been sent. When the input is closed already,
    /// closing the output closes the connection and discards unsent bytes.
    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        guard mode == .output else {
            context.close(mode: mode, promise: promise)
            return
        }
        end(context)
        promise?.succeed(())
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        context.fireUserInboundEventTriggered(event)
        if isOutputClosed, event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    }

    private func refuse(_ error: HTTPParserError, _ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        let refusal = ParseRefusal(error)
        refusal.log(to: logger)
        let promise = context.eventLoop.makePromise(of: Void.self)
        sent = promise.futureResult
        context.write(wrapOutboundOut(.head(refusal.head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(refusal.body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
        end(context)
    }

    private func end(_ context: ChannelHandlerContext) {
        guard state.beginEnding() else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        (sent ?? context.eventLoop.makeSucceededVoidFuture()).whenComplete { _ in
            let (handler, context) = bound.value
            handler.closeOutput(context)
        }
    }

    private func closeOutput(_ context: ChannelHandlerContext) {
        isOutputClosed = true
        // From here on this handler asks for each read. Under TLS, a read may bring only a part of
        // a record and reach no handler; without automatic reads, TLS repeats it by itself. Fails
        // only for a closed connection.
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        context.close(mode: .output, promise: nil)
        context.read()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.lingerTime) { bound.value.close(promise: nil) }
    }
}
