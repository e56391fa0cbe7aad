internal import KedgeModel
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// Next to the parser: answers what is no request in the form that every error has, and ends
/// connections in order.
///
/// In order means: all that was said is sent, then the sending side ends, and only then, when the client
/// has ended too or a moment later, the connection. Closing while the client still sends would reset it,
/// and the client would miss the answer.
final class WireHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private static let lingerTime = TimeAmount.seconds(2)

    private let logger: Logger
    private var state = WireState()
    /// Why what came is no request, until that has been answered.
    private var failure: HTTPParserError?
    /// Done when everything that was said has been handed to the kernel.
    private var sent: EventLoopFuture<Void>?
    private var isOutputClosed = false
    private var context: ChannelHandlerContext?

    init(logger: Logger) { self.logger = logger }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Sends bytes of a file as part of the body that is being answered.
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
            head.spellOut()
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            context.fireChannelRead(data)
        case .end:
            state.requestEnded()
            context.fireChannelRead(data)
        }
    }

    /// Nobody else asks for bytes any more, and unread ones would turn the close into a reset.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if state.isEnding { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Bytes after the first mistake; it has been dealt with.
        if case ByteToMessageDecoderError.dataReceivedInErrorState = error { return }
        guard let parserError = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        switch state.parsingFailed() {
        case .nothing: failure = failure ?? parserError
        case .tellReader: context.fireErrorCaught(error)
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

    /// Ending the sending side of a connection whose other side has ended closes it, with all that has
    /// not been sent yet.
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
        context.close(mode: .output, promise: nil)
        context.read()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.lingerTime) { bound.value.close(promise: nil) }
    }
}
